//! Reads both sides: all objects of the cluster first, then the archived ones, so that none is missed that leaves for
//! the archive meanwhile; then the rows of references.

use std::collections::BTreeSet;

use kindex_kube_client::{ClusterError, Page};
use kindex_model::head::Head;
use kindex_model::kind::{Kind, Registry, Scope};
use kindex_model::named_object::named;
use kindex_model::object::{Object, Uid};
use kindex_model::reference::Target;
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;
use kindex_query::select::Select;
use kindex_store::StoreError;
use kindex_store::progress::Progress;
use serde_json::Value;

use super::compare::{Everything, Known};
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
    for kind in registry.kinds {
        progress.begin(kind.name, None);
        match reader.live(kind).await {
            Err(error) if error.is_unserved() => {}
            read => read?,
        }
    }
    for kind in registry.kinds {
        reader.archived(kind).await?;
    }
    for kind in registry.kinds {
        reader.rows(kind).await?;
    }
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
                let references = object.metadata.finalizers.iter();
                let references = references.filter_map(|one| ReferenceName::of_finalizer(one)).collect();
                let version = object.metadata.resource_version.0;
                let known = self.known(kind, object, version, references);
                self.all.objects.insert(object.metadata.uid.to_string(), known);
            }
            token = page.continue_token;
            if token.is_none() {
                return Ok(());
            }
        }
    }

    async fn archived(&mut self, kind: &'static Kind) -> Result<(), RepairError> {
        let mut select = Select::all(kind).undeleted_by_uid();
        select.scan = true;
        let mut token: Option<String> = None;
        loop {
            let read = || self.sides.storage.select(&select, token.as_deref());
            let page = with_retries(self.budget, read).await?;
            for stored in page.items.iter().filter(|stored| stored.life == Life::Archived) {
                // The cluster's is newer, where it has the object still.
                if !self.all.objects.contains_key(&*stored.object.metadata.uid.0) {
                    let version = stored.object.metadata.resource_version.0;
                    let known = Known {
                        archived: true,
                        ..self.known(kind, &stored.object, version, BTreeSet::new())
                    };
                    self.all.objects.insert(stored.object.metadata.uid.to_string(), known);
                }
            }
            token = page.continue_token;
            if token.is_none() {
                return Ok(());
            }
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
                    self.all.stray_references.insert((kind.name, uid, row.name.clone()));
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
                if !self.all.objects.contains_key(&uid) && !self.is_live_row(kind, &row.uid).await? {
                    self.all.stray_tombstones.insert((kind.name, uid));
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

    /// What is to be known of an object of the cluster.
    fn known(&self, kind: &'static Kind, object: &Object, version: u64, references: BTreeSet<ReferenceName>) -> Known {
        // A text that is an object is JSON.
        let text: Value = serde_json::from_str(object.text()).unwrap_or_default();
        let scope = |target: &Target| own(self.registry, target).map_or(Scope::Namespaced, |kind| kind.scope);
        let waiting = kind.references.iter().filter(|reference| reference.waits());
        let names = waiting.filter_map(|reference| {
            let found = named(kind, reference, &text, scope)?;
            let target = own(self.registry, found.target)?;
            Some((reference.name, (target.group, target.name, found.namespace, found.name)))
        });
        let metadata = &object.metadata;
        let platform = &self.registry.platform;
        let guard = format!("{}/deletion", platform.group);
        Known {
            kind,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            version,
            leaving: Head::of(object, kind, platform).is_leaving(),
            archived: false,
            guarded: metadata.finalizers.contains(&guard),
            names: names.collect(),
            references,
        }
    }
}

fn own(registry: &Registry, target: &Target) -> Option<&'static Kind> {
    let mut kinds = registry.kinds.iter().copied();
    let found = kinds.find(|kind| kind.group == target.group && kind.name == target.kind);
    found.filter(|_| target.service.is_none())
}
