//! Both sides of `kindex versions`, either of which may be absent, and what each says of a kind.

use std::collections::{BTreeMap, BTreeSet};

use kindex_maintenance::convert::{Options, drop_kept, refused_rows};
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::survey::{Survey, survey};
use kindex_migrator::hash::{Encoding, Hash};
use kindex_migrator::verdict::{Question, Reason, Rows, Side, against};
use kindex_migrator::wire::GroupResource;
use kindex_model::kind::{Kind, Registry};
use kindex_store::StoreError;

use crate::cli::VersionSidesArgs;
use crate::data_dir::DataDir;
use crate::database::{Store, unanswered};
use crate::error::{CommandError, CommandResult, chain};
use crate::progress::Bar;
use crate::{one_cluster, say, sides};

/// Where to ask.
pub(super) struct Sources {
    registry: Registry,
    pub(super) cluster: Side<Cluster>,
    store: Side<Store>,
}

/// All definitions of a cluster with what belongs to them.
pub(super) type Surveys = BTreeMap<GroupResource, Survey>;

/// What both sides say of one kind.
pub(super) struct KindVersions<'a> {
    pub(super) kind: &'static Kind,
    registry: Registry,
    /// `None` within: the cluster does not have the kind.
    pub(super) cluster: Side<Option<&'a Survey>>,
    /// By `group_ver`.
    pub(super) rows: Side<BTreeMap<String, Rows>>,
    /// Versions of objects in the history, whatever `apiVersion` they have.
    pub(super) history_entries: u64,
}

impl Sources {
    /// Finds both sides as flags, files and the environment say. What was named and cannot be used is an error.
    pub(super) async fn open(registry: &Registry, args: &VersionSidesArgs) -> CommandResult<Self> {
        let of_store = &args.sides.store;
        let data_dir = DataDir::at(&of_store.data_dir.data_dir);
        let named = of_store.database.database.is_some() || of_store.config.is_some();
        let store = match (args.no_sql, named || data_dir.kindex_db().exists()) {
            (true, _) => Side::LeftOut,
            (false, true) => Side::Answered(sides::store(registry, of_store)?),
            (false, false) => {
                say::note("note: no database is configured; --database names one, --no-sql leaves it out");
                Side::Unasked
            }
        };
        let named = args.sides.kubeconfig.is_some() || data_dir.kubeconfig().is_file();
        let cluster = match sides::cluster(&args.sides).await {
            Ok(access) => {
                let access = sides::answering(access).await?;
                if let Side::Answered(store) = &store {
                    let shown = sides::shown(registry, of_store)?;
                    one_cluster::refuse_another(&access.client, store.as_ref(), &shown).await?;
                }
                Side::Answered(Cluster::new(access.client, Vec::new()))
            }
            Err(error) if named => return Err(error),
            Err(error) => {
                say::note(error.as_note());
                Side::Unasked
            }
        };
        Ok(Self {
            registry: *registry,
            cluster,
            store,
        })
    }

    /// Removes the texts that rows of a kind had in a version before they were converted.
    pub(super) async fn drop_kept(&self, kind: &'static Kind, version: &str) -> CommandResult {
        let Side::Answered(store) = &self.store else {
            return Ok(());
        };
        let dropped = async {
            // An older program made no table for them.
            store.prepare().await?;
            drop_kept(store.as_ref(), kind, version, &Options::default(), &Bar::new()).await
        };
        dropped.await.map(drop).map_err(|error: StoreError| unanswered(&error))
    }

    /// What the cluster says of all its resources.
    pub(super) async fn surveys(&self) -> CommandResult<Side<Surveys>> {
        Ok(match &self.cluster {
            Side::Answered(cluster) => {
                let surveys = survey(cluster).await.map_err(|error| {
                    CommandError::failure(chain(&error))
                        .hint("does the cluster of --kubeconfig run, and may you ask it?")
                })?;
                Side::Answered(surveys)
            }
            Side::LeftOut => Side::LeftOut,
            Side::Unasked => Side::Unasked,
        })
    }

    /// What both sides say of a kind.
    pub(super) async fn of<'a>(
        &self,
        kind: &'static Kind,
        surveys: &'a Side<Surveys>,
    ) -> CommandResult<KindVersions<'a>> {
        let cluster = match surveys {
            Side::Answered(surveys) => Side::Answered(surveys.get(&resource(kind))),
            Side::LeftOut => Side::LeftOut,
            Side::Unasked => Side::Unasked,
        };
        let mut history_entries = 0;
        let rows = match &self.store {
            Side::LeftOut => Side::LeftOut,
            Side::Unasked => Side::Unasked,
            Side::Answered(store) => {
                let counts = store.version_counts(kind).await.map_err(|error| unanswered(&error))?;
                history_entries = store.history_entries(kind).await.map_err(|error| unanswered(&error))?;
                let own = kind.api_version();
                let mut others = counts.iter().filter(|(version, _)| **version != own);
                let refused = match others.any(|(_, rows)| rows.archived + rows.deleted > 0) {
                    true => refused_rows(store.as_ref(), kind)
                        .await
                        .map_err(|error| unanswered(&error))?,
                    false => BTreeMap::new(),
                };
                let rows = counts.into_iter().map(|(api_version, rows)| {
                    let refused = refused.get(&api_version).copied().unwrap_or_default();
                    let rows = Rows {
                        // Some may have been purged since.
                        refused: refused.min(rows.archived + rows.deleted),
                        live: rows.live,
                        archived: rows.archived,
                        deleted: rows.deleted,
                    };
                    (api_version, rows)
                });
                Side::Answered(rows.collect())
            }
        };
        Ok(KindVersions {
            kind,
            registry: self.registry,
            cluster,
            rows,
            history_entries,
        })
    }

    /// Ends the use of the database.
    pub(super) async fn close(&self) {
        if let Side::Answered(store) = &self.store {
            store.close().await;
        }
    }
}

/// The resource of a kind.
pub(super) fn resource(kind: &Kind) -> GroupResource {
    GroupResource {
        group: kind.group.to_owned(),
        resource: kind.plural.to_owned(),
    }
}

impl KindVersions<'_> {
    /// What the cluster says, where it has the kind.
    pub(super) fn survey(&self) -> Option<&Survey> {
        match self.cluster {
            Side::Answered(survey) => survey,
            Side::LeftOut | Side::Unasked => None,
        }
    }

    /// All versions that anybody declares or stores: the kind's own first, those of another group by their whole name.
    pub(super) fn versions(&self) -> Vec<String> {
        let mut others: BTreeSet<String> = self.kind.version_names().map(str::to_owned).collect();
        if let Some(Survey { stored, .. }) = self.survey() {
            others.extend(stored.versions.iter().map(|(name, _)| name.clone()));
            others.extend(stored.stored_versions.iter().cloned());
        }
        if let Side::Answered(rows) = &self.rows {
            let prefix = format!("{}/", self.kind.group);
            let short = |api_version: &String| {
                let version = api_version.strip_prefix(&prefix);
                version.unwrap_or(api_version).to_owned()
            };
            others.extend(rows.keys().map(short));
        }
        others.remove(self.kind.version);
        std::iter::once(self.kind.version.to_owned()).chain(others).collect()
    }

    /// `group/version` of a version as [`versions`](Self::versions) has it.
    pub(super) fn api_version(&self, version: &str) -> String {
        match version.contains('/') {
            true => version.to_owned(),
            false => format!("{}/{version}", self.kind.group),
        }
    }

    /// The storage version hash of such a version.
    pub(super) fn hash(&self, version: &str) -> Hash {
        let api_version = self.api_version(version);
        let (group, version) = api_version.split_once('/').unwrap_or(("", version));
        Hash::of(group, version, self.kind.name)
    }

    /// An encoding by the name of its version, where this program ever knew that.
    pub(super) fn name_of(&self, encoding: &Encoding) -> String {
        let hash = encoding.to_string();
        let version = self.registry.version_of(self.kind, &hash);
        version.map_or(hash, |declared| declared.version.to_owned())
    }

    /// The rows in a version.
    pub(super) fn rows_in(&self, version: &str) -> Side<Rows> {
        match &self.rows {
            Side::Answered(rows) => Side::Answered(rows.get(&self.api_version(version)).copied().unwrap_or_default()),
            Side::LeftOut => Side::LeftOut,
            Side::Unasked => Side::Unasked,
        }
    }

    /// Everything that stands against dropping a version.
    pub(super) fn against(&self, version: &str) -> Vec<Reason> {
        let cluster = match self.cluster {
            Side::Answered(survey) => Side::Answered(survey.map(|survey| &survey.stored)),
            Side::LeftOut => Side::LeftOut,
            Side::Unasked => Side::Unasked,
        };
        against(&Question {
            version,
            hash: &self.hash(version),
            cluster,
            rows: self.rows_in(version),
        })
    }
}
