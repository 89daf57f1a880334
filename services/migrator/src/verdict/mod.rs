//! Whether a version of a kind may be dropped, and whether another release knows all versions that are stored. Both are
//! functions of what cluster and SQL say, and name everything that stands against it.
//!
//! A version may be dropped when a migration for the version and the definition that the cluster has now was verified,
//! or when the cluster lists the version nowhere and has a state that lists the current one, and when no row of SQL has
//! it. A state that lists the version beside such a migration does not stand against it: the trigger has not looked
//! since.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::hash::{Encoding, Hash};
use crate::migration::{Migration, Progress};
use crate::run::Refused;
use crate::state::{Definition, State};

#[cfg(test)]
mod tests;

/// What one side said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side<T> {
    /// This.
    Answered(T),
    /// It is left out on purpose, and says nothing against anything.
    LeftOut,
    /// It could not be asked.
    Unasked,
}

/// What a cluster says of the versions of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The CustomResourceDefinition, in its present state.
    pub definition: Definition,
    /// Its versions, and whether each is served.
    pub versions: Vec<(String, bool)>,
    /// The version in which objects are stored.
    pub storage: String,
    /// Its hash.
    pub hash: Hash,
    /// `status.storedVersions`.
    pub stored_versions: Vec<String>,
    /// The `StorageState`, where there is one.
    pub state: Option<State>,
    /// All migrations of the resource.
    pub migrations: Vec<Ended>,
}

/// A migration, and why it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The migration.
    pub migration: Migration,
    /// Message of its condition; empty while it is under way.
    pub why: String,
    /// Objects that could not be written.
    pub refused: u64,
    /// The first of them.
    pub first_refused: Option<Refused>,
}

/// Rows of SQL in one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Objects that the cluster has.
    pub live: u64,
    /// Archived objects.
    pub archived: u64,
    /// Deleted objects.
    pub deleted: u64,
    /// Rows of archived and deleted objects that the last conversion could not convert.
    pub refused: u64,
}

impl Rows {
    fn is_empty(&self) -> bool {
        self.live + self.archived + self.deleted == 0
    }

    /// What is to be done about them.
    fn advice(&self) -> String {
        match (self.archived + self.deleted, self.refused) {
            (0, _) => String::new(),
            (_, 0) => " (`kindex versions convert` converts the archived and deleted ones)".to_owned(),
            (_, refused) => {
                format!(" ({refused} could not be converted: `kindex versions convert --dry-run` lists them)")
            }
        }
    }
}

/// One thing that stands against dropping a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nobody asked the cluster.
    ClusterNotAsked,
    /// The cluster does not have the kind: it may be another cluster.
    NotInstalled,
    /// The cluster stores objects in it.
    IsStorage,
    /// The API servers write in different versions.
    Divided,
    /// `status.storedVersions` lists it.
    StoredVersions,
    /// The state lists it.
    Persisted,
    /// The state lists `Unknown`.
    Unknown,
    /// There is no state, or one that does not even list the current version: it proves nothing.
    NoState,
    /// No migration was ever begun.
    NeverMigrated,
    /// This migration waits for a migrator.
    Pending(String),
    /// This migration is under way.
    Running(String),
    /// This migration failed.
    Failed {
        /// Its name.
        name: String,
        /// Message of its condition.
        why: String,
    },
    /// Objects that the API server refuses to write.
    ObjectsRefused {
        /// How many.
        count: u64,
        /// The first of them, and why, where it is known.
        first: Option<Refused>,
    },
    /// This migration was verified for another storage version.
    OtherTarget(String),
    /// The definition changed after this migration had begun.
    Redefined(String),
    /// The definition is another one than that of this migration.
    Recreated(String),
    /// Nobody asked SQL.
    SqlNotAsked,
    /// Rows have it.
    Rows(Rows),
}

/// A version of a kind, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// `v1`.
    pub version: &'a str,
    /// Its storage version hash.
    pub hash: &'a Hash,
    /// What the cluster says; `None`: it does not have the kind.
    pub cluster: Side<Option<&'a Stored>>,
    /// The rows in this version.
    pub rows: Side<Rows>,
}

/// Everything that stands against dropping a version; nothing: it may be dropped.
pub fn against(question: &Question<'_>) -> Vec<Reason> {
    let mut reasons = match question.cluster {
        Side::Answered(Some(stored)) => in_cluster(question, stored),
        Side::Answered(None) => vec![Reason::NotInstalled],
        Side::Unasked => vec![Reason::ClusterNotAsked],
        Side::LeftOut => Vec::new(),
    };
    match question.rows {
        Side::Answered(rows) if !rows.is_empty() => reasons.push(Reason::Rows(rows)),
        Side::Answered(_) | Side::LeftOut => {}
        Side::Unasked => reasons.push(Reason::SqlNotAsked),
    }
    reasons
}

fn in_cluster(question: &Question<'_>, stored: &Stored) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if stored.storage == question.version {
        reasons.push(Reason::IsStorage);
    }
    let state = stored.state.as_ref();
    if state.is_some_and(|state| state.current == Encoding::Unknown) {
        reasons.push(Reason::Divided);
    }
    if is_verified(stored) {
        return reasons;
    }
    let before = reasons.len();
    if stored.stored_versions.iter().any(|version| version == question.version) {
        reasons.push(Reason::StoredVersions);
    }
    if !lists_current(stored) {
        reasons.push(Reason::NoState);
    }
    for encoding in state.iter().flat_map(|state| &state.persisted) {
        match encoding {
            Encoding::Unknown => reasons.push(Reason::Unknown),
            Encoding::Known(hash) if hash == question.hash => reasons.push(Reason::Persisted),
            Encoding::Known(_) => {}
        }
    }
    if reasons.len() > before {
        reasons.extend(unverified(stored));
    }
    reasons
}

/// Whether a state says in which versions objects are stored: one that lists not even the current version does not.
fn lists_current(stored: &Stored) -> bool {
    let current = Encoding::Known(stored.hash.clone());
    let lists = |state: &State| state.persisted.contains(&current) || state.persisted.contains(&Encoding::Unknown);
    stored.state.as_ref().is_some_and(lists)
}

/// Whether all objects were verified to be in the version that this definition stores.
pub fn is_verified(stored: &Stored) -> bool {
    let verifies = |migration: &Migration| {
        migration.progress == Progress::Succeeded
            && migration.target.hash.as_ref() == Some(&stored.hash)
            && migration.target.definition.as_ref() == Some(&stored.definition)
    };
    stored.migrations.iter().any(|ended| verifies(&ended.migration))
}

/// Why none of the migrations says that all objects are in the current version.
fn unverified(stored: &Stored) -> Vec<Reason> {
    if stored.migrations.is_empty() {
        return vec![Reason::NeverMigrated];
    }
    stored
        .migrations
        .iter()
        .flat_map(|ended| shortfall(stored, ended))
        .collect()
}

fn shortfall(stored: &Stored, ended: &Ended) -> Vec<Reason> {
    let Ended { migration, why, .. } = ended;
    let name = migration.name.clone();
    match migration.progress {
        Progress::Pending => vec![Reason::Pending(name)],
        Progress::Running => vec![Reason::Running(name)],
        Progress::Failed { .. } => {
            let failed = Reason::Failed { name, why: why.clone() };
            let refused = (ended.refused > 0).then(|| Reason::ObjectsRefused {
                count: ended.refused,
                first: ended.first_refused.clone(),
            });
            std::iter::once(failed).chain(refused).collect()
        }
        Progress::Succeeded => vec![match &migration.target.definition {
            _ if migration.target.hash.as_ref() != Some(&stored.hash) => Reason::OtherTarget(name),
            Some(then) if then.uid != stored.definition.uid => Reason::Recreated(name),
            Some(_) | None => Reason::Redefined(name),
        }],
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            live,
            archived,
            deleted,
            ..
        } = self;
        write!(formatter, "{live} live, {archived} archived, {deleted} deleted")
    }
}

impl fmt::Display for Reason {
    /// Without the version, which is the subject.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClusterNotAsked => write!(formatter, "the cluster was not asked"),
            Self::NotInstalled => write!(formatter, "the cluster has no CustomResourceDefinition of the kind"),
            Self::IsStorage => write!(formatter, "the cluster stores objects in it"),
            Self::Divided => write!(formatter, "the API servers write in different versions"),
            Self::StoredVersions => write!(formatter, "status.storedVersions lists it"),
            Self::Persisted => write!(formatter, "the StorageState lists it"),
            Self::Unknown => write!(formatter, "the StorageState lists Unknown, which is any version"),
            Self::NoState => write!(formatter, "no StorageState says in which versions objects are stored"),
            Self::NeverMigrated => write!(formatter, "no migration has run"),
            Self::Pending(name) => write!(formatter, "migration {name} waits for a migrator"),
            Self::Running(name) => write!(formatter, "migration {name} is under way"),
            Self::Failed { name, why } => write!(formatter, "migration {name} failed: {why}"),
            Self::ObjectsRefused { count, first: None } => write!(formatter, "{count} objects cannot be written"),
            Self::ObjectsRefused {
                count,
                first: Some(Refused { object, why }),
            } => write!(formatter, "{count} objects cannot be written, such as {object}: {why}"),
            Self::OtherTarget(name) => write!(formatter, "migration {name} was for another storage version"),
            Self::Redefined(name) => {
                write!(
                    formatter,
                    "the CustomResourceDefinition changed after migration {name} had begun"
                )
            }
            Self::Recreated(name) => {
                write!(
                    formatter,
                    "the CustomResourceDefinition was created again after migration {name}"
                )
            }
            Self::SqlNotAsked => write!(formatter, "SQL was not asked"),
            Self::Rows(rows) => write!(formatter, "SQL has rows in it: {rows}{}", rows.advice()),
        }
    }
}

/// Something that is stored and that another release does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The release declares no version of the kind: its lock may be empty, or another file.
    Undeclared,
    /// Nobody asked the cluster.
    ClusterNotAsked,
    /// The cluster does not have the kind: it may be another cluster.
    NotInstalled,
    /// There is no state, or one that does not even list the current version: it proves nothing.
    NoState,
    /// The cluster may store objects in this version.
    Version(String),
    /// The cluster may store objects in the version of this hash.
    Hash(Hash),
    /// The cluster may store objects in any version.
    Unknown,
    /// The API servers write in different versions.
    Divided,
    /// Nobody asked SQL.
    SqlNotAsked,
    /// Rows have this `group_ver`.
    Rows {
        /// `group_ver`.
        api_version: String,
        /// How many.
        rows: Rows,
    },
}

/// The versions of a kind that another release knows.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    /// API group.
    pub group: &'a str,
    /// `Trial`.
    pub kind: &'a str,
    /// `group/version` of each.
    pub api_versions: BTreeSet<String>,
}

/// Everything that is stored of a kind and that a release does not know; nothing: it can take over.
pub fn gaps(known: &Known<'_>, cluster: Side<Option<&Stored>>, rows: Side<&BTreeMap<String, Rows>>) -> Vec<Gap> {
    let mut gaps = Vec::new();
    if known.api_versions.is_empty() {
        gaps.push(Gap::Undeclared);
    }
    match cluster {
        Side::Answered(Some(stored)) => gaps.extend(in_etcd(known, stored)),
        Side::Answered(None) => gaps.push(Gap::NotInstalled),
        Side::LeftOut => {}
        Side::Unasked => gaps.push(Gap::ClusterNotAsked),
    }
    match rows {
        Side::Answered(rows) => gaps.extend(rows.iter().filter_map(|(api_version, rows)| {
            let is_known = known.api_versions.contains(api_version);
            (!is_known && !rows.is_empty()).then(|| Gap::Rows {
                api_version: api_version.clone(),
                rows: *rows,
            })
        })),
        Side::LeftOut => {}
        Side::Unasked => gaps.push(Gap::SqlNotAsked),
    }
    gaps
}

fn in_etcd(known: &Known<'_>, stored: &Stored) -> Vec<Gap> {
    let Known { group, kind, .. } = known;
    let versions = stored.stored_versions.iter().chain([&stored.storage]);
    let unknown: BTreeSet<&String> = versions
        .filter(|version| !known.api_versions.contains(&format!("{group}/{version}")))
        .collect();
    let named: Vec<Hash> = unknown.iter().map(|version| Hash::of(group, version, kind)).collect();
    let hashes: Vec<Hash> = known
        .api_versions
        .iter()
        .filter_map(|api_version| api_version.split_once('/'))
        .map(|(group, version)| Hash::of(group, version, kind))
        .collect();
    let mut gaps: Vec<Gap> = unknown.into_iter().cloned().map(Gap::Version).collect();
    if !lists_current(stored) {
        gaps.push(Gap::NoState);
    }
    if let Some(state) = &stored.state {
        gaps.extend((state.current == Encoding::Unknown).then_some(Gap::Divided));
        gaps.extend(state.persisted.iter().filter_map(|encoding| match encoding {
            Encoding::Unknown => Some(Gap::Unknown),
            Encoding::Known(hash) if hashes.contains(hash) || named.contains(hash) => None,
            Encoding::Known(hash) => Some(Gap::Hash(hash.clone())),
        }));
    }
    gaps
}
