//! What an archived object holds, which the object that is restored from it has to hold from its first moment on. Rows
//! of references go over when the store closes the row of the holder (`kindex_store`). What is held otherwise becomes a
//! row before, or the restoration is refused. Nobody takes these rows back where the cluster refuses the new object:
//! another restoration of the same object may count on them, and a request without an answer may create the object
//! later. If none comes, they are rows like those of every archived holder.

use std::borrow::Cow;

use jiff::Timestamp;
use kindex_kube_client::ObjectName;
use kindex_model::head::is_deletion_finalizer;
use kindex_model::kind::{Kind, Registry, Scope};
use kindex_model::named_object::{NamedObject, named, naming_fields};
use kindex_model::object::{Object, Uid};
use kindex_model::reference::Target;
use kindex_model::reference_name::ReferenceName;
use kindex_query::Life;

use crate::retries::{RetryBudget, with_retries};
use crate::sides::{RepairError, Sides};

/// By whom rows are placed.
const PLACED_BY: &str = "kindex-restore";

/// Both sides, where holders and what they hold are looked up.
pub(super) struct Lookup<'a> {
    pub(super) sides: &'a Sides,
    pub(super) registry: &'a Registry,
    pub(super) retry_budget: RetryBudget,
}

impl Lookup<'_> {
    /// The object of this uid while it is archived. Others hold nothing that a restoration could lose.
    pub(super) async fn archived(&self, kind: &'static Kind, uid: &Uid) -> Result<Option<Object>, RepairError> {
        let read = || self.sides.storage.get_by_id(kind, uid);
        let found = with_retries(self.retry_budget, read).await?;
        let found = found.filter(|found| found.life == Life::Archived);
        Ok(found.map(|found| found.object))
    }

    /// Why an archived object cannot be restored.
    pub(super) async fn refusal(
        &self,
        kind: &'static Kind,
        archived: &Object,
        new_name: Option<&str>,
    ) -> Result<Option<String>, RepairError> {
        let uids = [archived.metadata.uid.clone()];
        let waiting = || self.sides.storage.tombstones(kind, &uids);
        if let Some(tombstone) = with_retries(self.retry_budget, waiting).await?.first() {
            return Ok(Some(format!(
                "it was deleted in the archive at {} and waits for what holds it; a deletion is never taken back. \
                 `kindex why {}/{}` names what it waits for; restore it once it is gone",
                tombstone.requested, kind.singular, archived.metadata.name
            )));
        }
        let is_renamed = new_name.is_some_and(|name| name != archived.metadata.name);
        let objects = match named_by(self.registry, kind, archived) {
            Ok(objects) => objects,
            Err(error) => return Ok(Some(format!("what it holds cannot be read from its text: {error}"))),
        };
        let foreign = objects.iter().find(|one| is_renamed && one.target.service.is_some());
        Ok(foreign.map(|one| {
            let service = one.target.service.map_or("", |service| service.name);
            format!(
                "it holds {} {} of the service {service}, which would lose that reference if the object came back \
                 under another name; restore it under its own name, without --as",
                one.target.kind, one.name
            )
        }))
    }

    /// Stores what an archived object holds without a row: an object with the finalizer in the cluster may have its
    /// reference as a finalizer still, and the deletion of an object may have found it by its field alone.
    pub(super) async fn keep(&self, kind: &'static Kind, archived: &Object) -> Result<(), RepairError> {
        let Ok(name) = ReferenceName::new(kind.name, kind.group, &archived.metadata.uid.0) else {
            return Ok(());
        };
        let names = [name];
        // `refusal` comes first, and refuses an object whose text cannot be read.
        let objects = named_by(self.registry, kind, archived).unwrap_or_default();
        for object in objects {
            let Some(target) = own(self.registry, object.target) else {
                continue;
            };
            let place = ObjectName {
                namespace: object.namespace,
                name: object.name,
            };
            let Some(uid) = self.waits_for_holders(target, &place).await? else {
                continue;
            };
            let (target, now) = ((target, &uid), Timestamp::now());
            let keep = || {
                let storage = &self.sides.storage;
                storage.keep_references(kind, &names, target, PLACED_BY, now)
            };
            with_retries(self.retry_budget, keep).await?;
        }
        Ok(())
    }

    /// The uid of an object whose deletion `kindex deletion` carries out. Without that service, nobody would release a
    /// row of a live object.
    async fn waits_for_holders(&self, kind: &'static Kind, place: &ObjectName) -> Result<Option<Uid>, RepairError> {
        if let Some(live) = self.live(kind, place).await? {
            let mut finalizers = live.metadata.finalizers.iter();
            let has_deletion_finalizer = finalizers.any(|one| is_deletion_finalizer(one, &self.registry.platform));
            return Ok(has_deletion_finalizer.then(|| live.metadata.uid.clone()));
        }
        let read = || self.sides.storage.get_by_name(kind, &place.namespace, &place.name);
        let found = with_retries(self.retry_budget, read).await?;
        let Some(found) = found.filter(|found| found.life == Life::Archived) else {
            return Ok(None);
        };
        let uids = [found.object.metadata.uid.clone()];
        let waiting = || self.sides.storage.tombstones(kind, &uids);
        let waiting = with_retries(self.retry_budget, waiting).await?;
        Ok(waiting.into_iter().next().map(|tombstone| tombstone.uid))
    }

    /// The live object of a name: the cluster's, or that of SQL if the kind is SQL-only.
    async fn live(&self, kind: &'static Kind, place: &ObjectName) -> Result<Option<Object>, RepairError> {
        if !kind.cluster {
            let read = || self.sides.storage.get_by_name(kind, &place.namespace, &place.name);
            let found = with_retries(self.retry_budget, read).await?;
            return Ok(found.filter(|found| found.life == Life::Live).map(|found| found.object));
        }
        let live = with_retries(self.retry_budget, || self.sides.cluster.find(kind, place)).await;
        live.map_err(|source| RepairError::cluster(kind, source))
    }
}

/// The objects that the fields of an object name and whose deletion waits for it.
///
/// # Errors
/// A text of which not even these fields can be read.
fn named_by(
    registry: &Registry,
    kind: &'static Kind,
    object: &Object,
) -> Result<Vec<NamedObject<'static>>, serde_json::Error> {
    if !kind.references.iter().any(|reference| reference.waits()) {
        return Ok(Vec::new());
    }
    // Rows may be in another version than that of whose fields the references are.
    let converted = kindex_convert::text_in(&registry.platform, kind, object, kind.version);
    let converted = converted.unwrap_or(Cow::Borrowed(object.text()));
    let fields = naming_fields(kind, &converted)?;
    let scope = |target: &Target| match (target.service, own(registry, target)) {
        (Some(service), _) if !service.has_namespaces(target.kind) => Scope::Cluster,
        (None, Some(kind)) => kind.scope,
        (Some(_) | None, _) => Scope::Namespaced,
    };
    let waiting = kind.references.iter().filter(|reference| reference.waits());
    let objects = waiting.filter_map(|reference| named(kind, reference, &fields, scope));
    Ok(objects.collect())
}

fn own(registry: &Registry, target: &Target) -> Option<&'static Kind> {
    let mut kinds = registry.kinds.iter().copied();
    let found = kinds.find(|kind| kind.group == target.group && kind.name == target.kind);
    found.filter(|_| target.service.is_none())
}
