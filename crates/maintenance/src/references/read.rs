//! Reads both sides: all objects of the cluster first, then those that are archived or of SQL-only kinds, so that
//! none is missed that is archived meanwhile; then the rows of references. At last, other services are asked.

use std::borrow::Cow;
use std::collections::BTreeSet;

use kindex_kube_client::{ClusterError, Page};
use kindex_model::head::Head;
use kindex_model::kind::{Kind, Registry, Scope};
use kindex_model::named_object::{named, naming_fields};
use kindex_model::object::{Object, Uid};
use kindex_model::reference::Target;
use kindex_model::reference_name::ReferenceName;
use kindex_query::select::Select;
use kindex_query::{Life, Stored};
use kindex_store::StoreError;
use kindex_store::progress::Progress;
use serde_json::Value;

use super::PeerApi;
use super::compare::{Everything, Known};
use super::elsewhere::PeersState;
use crate::retries::{RetryBudget, with_retries};
use crate::sides::{RepairError, Sides};

/// Objects, or rows of references, that are read at once.
const PAGE_ROWS: u32 = 500;
/// How often an expired list is restarted.
const LISTS_MAX: u32 = 5;

/// A reading under way.
struct Reader<'a> {
    sides: &'a Sides,
    registry: &'a Registry,
    budget: RetryBudget,
    all: Everything,
}

/// Reads all objects and all rows of references. Kinds that the cluster does not serve have no live objects.
pub(super) async fn everything(
    sides: &Sides,
    registry: &Registry,
    others: &impl PeerApi,
    others_state: &mut PeersState,
    budget: RetryBudget,
    progress: &dyn Progress,
) -> Result<Everything, RepairError> {
    let mut reader = Reader {
        sides,
        registry,
        budget,
        all: Everything {
            kinds: registry.kinds.to_vec(),
            ..Everything::default()
        },
    };
    for kind in registry.cluster_kinds() {
        progress.begin(kind.name, None);
        match reader.live(kind).await {
            Err(error) if error.is_unserved() => {
                reader.all.unserved.insert((kind.group, kind.name));
            }
            read => read?,
        }
    }
    for kind in registry.kinds {
        reader.stored(kind).await?;
    }
    for kind in registry.kinds {
        reader.rows(kind).await?;
    }
    others_state.ask(&mut reader.all, registry, others, progress).await;
    Ok(reader.all)
}

impl Reader<'_> {
    async fn live(&mut self, kind: &'static Kind) -> Result<(), RepairError> {
        for attempt in 1.. {
            match self.list(kind).await {
                Err(ClusterError::Expired(_)) if attempt < LISTS_MAX => {}
                read => return read.map_err(|source| RepairError::cluster(kind, source)),
            }
        }
        Ok(())
    }

    async fn list(&mut self, kind: &'static Kind) -> Result<(), ClusterError> {
        let mut token: Option<String> = None;
        loop {
            let list = || self.sides.cluster.list(kind, PAGE_ROWS, token.as_deref());
            let page: Page = with_retries(self.budget, list).await?;
            for object in &page.objects {
                let known = self.known(kind, object);
                self.all.objects.insert(object.metadata.uid.to_string(), known);
            }
            token = page.continue_token;
            if token.is_none() {
                return Ok(());
            }
        }
    }

    /// The objects that are archived, or of SQL-only kinds.
    async fn stored(&mut self, kind: &'static Kind) -> Result<(), RepairError> {
        let mut select = Select::all(kind).undeleted_by_uid();
        select.scan = true;
        let mut token: Option<String> = None;
        loop {
            let read = || self.sides.storage.select(&select, token.as_deref());
            let page = with_retries(self.budget, read).await?;
            for stored in &page.items {
                let uid = stored.object.metadata.uid.to_string();
                // The cluster's is newer, where it has the object still.
                if self.all.objects.contains_key(&uid) {
                    continue;
                }
                if let Some(known) = self.kept(kind, stored) {
                    self.all.objects.insert(uid, known);
                }
            }
            token = page.continue_token;
            if token.is_none() {
                return Ok(());
            }
        }
    }

    /// An archived object, whose references are rows, or one of a kind that no cluster has, whose references are
    /// finalizers.
    fn kept(&self, kind: &'static Kind, stored: &Stored) -> Option<Known> {
        match stored.life {
            Life::Live => (!kind.cluster).then(|| self.known(kind, &stored.object)),
            Life::Archived => Some(Known {
                archived: true,
                releases: false,
                references: BTreeSet::new(),
                ..self.known(kind, &stored.object)
            }),
            Life::Deleted => None,
        }
    }

    /// The rows belong to objects that were read, or to objects that are gone.
    async fn rows(&mut self, kind: &'static Kind) -> Result<(), RepairError> {
        let mut last = None;
        loop {
            let read = || self.sides.storage.reference_page(kind, last.as_ref(), PAGE_ROWS);
            let page = with_retries(self.budget, read).await?;
            for row in &page {
                let uid = row.uid.to_string();
                if let (Some(object), Ok(name)) = (self.all.objects.get_mut(&uid), row.name.parse()) {
                    object.references.insert(name);
                } else if !self.is_live_row(kind, &row.uid).await? {
                    self.all.orphaned_references.insert((kind.name, uid, row.name.clone()));
                }
            }
            match page.last() {
                Some(row) if page.len() >= PAGE_ROWS as usize => last = Some(row.clone()),
                _ => break,
            }
        }
        let mut last: Option<Uid> = None;
        loop {
            let read = || self.sides.storage.tombstone_page(kind, last.as_ref(), PAGE_ROWS);
            let page = with_retries(self.budget, read).await?;
            for row in &page {
                let uid = row.uid.to_string();
                if let Some(object) = self.all.objects.get_mut(&uid) {
                    object.releases = true;
                } else if !self.is_live_row(kind, &row.uid).await? {
                    self.all.orphaned_tombstones.insert((kind.name, uid));
                }
            }
            match page.last() {
                Some(row) if page.len() >= PAGE_ROWS as usize => last = Some(row.uid.clone()),
                _ => return Ok(()),
            }
        }
    }

    /// Whether SQL has the object as a live one, which the list of the cluster came too early or too late for.
    async fn is_live_row(&self, kind: &'static Kind, uid: &Uid) -> Result<bool, StoreError> {
        let read = || self.sides.storage.get_by_id(kind, uid);
        let found = with_retries(self.budget, read).await?;
        Ok(found.is_some_and(|stored| stored.life == Life::Live))
    }

    /// What is to be known of an object, whose references are finalizers.
    fn known(&self, kind: &'static Kind, object: &Object) -> Known {
        // Rows may be in another version than that of whose fields the references are.
        let converted = kindex_convert::text_in(&self.registry.platform, kind, object, kind.version);
        let converted = converted.unwrap_or(Cow::Borrowed(object.text()));
        let fields = naming_fields(kind, &converted).unwrap_or_else(|error| {
            let uid = &object.metadata.uid;
            tracing::warn!(kind = kind.name, %uid, %error, "What an object names cannot be read, and is not compared");
            Value::Null
        });
        let scope = |target: &Target| match (target.service, own(self.registry, target)) {
            (Some(service), _) if !service.has_namespaces(target.kind) => Scope::Cluster,
            (None, Some(kind)) => kind.scope,
            (Some(_) | None, _) => Scope::Namespaced,
        };
        let waiting = kind.references.iter().filter(|reference| reference.waits());
        let names = waiting.filter_map(|reference| {
            let found = named(kind, reference, &fields, scope)?;
            let target = found.target;
            let is_known = target.service.is_some() || own(self.registry, target).is_some();
            is_known.then_some((reference.name, (target.group, target.kind, found.namespace, found.name)))
        });
        let metadata = &object.metadata;
        let references = metadata.finalizers.iter();
        let platform = &self.registry.platform;
        let deletion_finalizer = format!("{}/deletion", platform.group);
        let leaving = Head::of(object, kind, platform).is_leaving();
        Known {
            kind,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            version: metadata.resource_version.0,
            leaving,
            archived: false,
            releases: leaving,
            restored_from: metadata.annotations.get(platform.restored_from).cloned(),
            has_deletion_finalizer: metadata.finalizers.contains(&deletion_finalizer),
            names: names.collect(),
            references: references.filter_map(|one| ReferenceName::of_finalizer(one)).collect(),
        }
    }
}

fn own(registry: &Registry, target: &Target) -> Option<&'static Kind> {
    let mut kinds = registry.kinds.iter().copied();
    let found = kinds.find(|kind| kind.group == target.group && kind.name == target.kind);
    found.filter(|_| target.service.is_none())
}
