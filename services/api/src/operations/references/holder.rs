//! The holders of references: who may speak for one, and what is known of it.

use futures::{StreamExt, TryStreamExt, stream};
use kindex_kube_api::status::{Details, Reason};
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_model::reference_name::ReferenceName;
use kindex_query::Stored;

use super::answer::{Holder, ListedReference, State, state_of};
use super::decide::is_of_kind;
use crate::operations::rights::{HolderResource, Rights};
use crate::operations::{Backends, Caller, Refusal, Storage, refusal};

/// Holders that are looked up at the same time.
const AT_ONCE: usize = 8;

impl Backends {
    /// The kind of a holder, if it is of this program.
    pub(in super::super) fn kind_of(&self, reference: &ReferenceName) -> Option<&'static Kind> {
        let mut kinds = self.registry.kinds.iter().copied();
        kinds.find(|kind| is_of_kind(reference, kind))
    }

    /// The same of a kind of this program. By the uid, another service knows that nobody else can say so; without a
    /// database, nobody can.
    pub(super) fn no_holder_of_ours(&self, reference: &ReferenceName) -> Refusal {
        let refusal = no_holder(reference);
        if !self.is_storing() {
            return refusal;
        }
        refusal.with(Details {
            name: reference.to_string(),
            uid: reference.uid().to_owned(),
            ..Details::default()
        })
    }

    /// Whether kinds of a group are of this program.
    pub(in super::super) fn kinds_of_group(&self, group: &str) -> bool {
        self.registry.kinds.iter().any(|kind| kind.group == group)
    }

    /// The row of a holder, whatever has become of it.
    pub(in super::super) async fn stored_holder(
        &self,
        kind: &'static Kind,
        reference: &ReferenceName,
    ) -> Result<Option<Stored>, Refusal> {
        let Storage::On { store, .. } = &self.storage else {
            return Ok(None);
        };
        let found = store.get_by_id(kind, &Uid::from(reference.uid())).await;
        found.map_err(|error| refusal::of_query(&error))
    }
}

/// Refuses who may not speak for the holder of a reference.
pub(super) async fn allow_to_speak(
    backends: &Backends,
    rights: &Rights,
    caller: &Caller,
    reference: &ReferenceName,
) -> Result<(), Refusal> {
    if rights.are_of_the_server() && caller.impersonate.is_none() {
        return Ok(());
    }
    let kind = backends.kind_of(reference);
    let holder = match kind {
        Some(kind) => backends.stored_holder(kind, reference).await?,
        None => None,
    };
    let plural = match kind {
        Some(kind) => kind.plural.to_owned(),
        None => backends.registry.plural_elsewhere(reference.group(), reference.kind()),
    };
    let holder = holder_resource(reference, plural, holder.as_ref());
    rights.allow_holder(caller, &holder).await
}

/// References with what is known of their holders.
pub(super) async fn held(
    backends: &Backends,
    rights: &Rights,
    caller: &Caller,
    references: Vec<ReferenceName>,
) -> Result<Vec<ListedReference>, Refusal> {
    stream::iter(references)
        .map(|reference| held_by(backends, rights, caller, reference))
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

async fn held_by(
    backends: &Backends,
    rights: &Rights,
    caller: &Caller,
    reference: ReferenceName,
) -> Result<ListedReference, Refusal> {
    let Some(kind) = backends.kind_of(&reference) else {
        return Ok(ListedReference::of(&reference, None, None));
    };
    let unknown = Holder {
        namespace: String::new(),
        name: String::new(),
        state: State::Unknown,
    };
    let Some(stored) = backends.stored_holder(kind, &reference).await? else {
        return Ok(ListedReference::of(&reference, Some(kind), Some(unknown)));
    };
    let metadata = &stored.object.metadata;
    // The reference itself is a part of the target, which the caller may read.
    if !rights.may_read(caller, kind, &metadata.namespace).await {
        return Ok(ListedReference::of(&reference, Some(kind), Some(unknown)));
    }
    let holder = Holder {
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        state: state_of(&stored, kind, &backends.registry.platform),
    };
    Ok(ListedReference::of(&reference, Some(kind), Some(holder)))
}

/// 404: no object has references of this name.
pub(super) fn no_holder(reference: &ReferenceName) -> Refusal {
    Refusal::new(
        Reason::NotFound,
        format!("no object has references of the name {reference}"),
    )
}

/// On which object the right is wanted. That of a holder that SQL does not have, of another service above all, is
/// wanted on all objects of its kind.
fn holder_resource(reference: &ReferenceName, plural: String, holder: Option<&Stored>) -> HolderResource {
    let metadata = holder.map(|stored| &stored.object.metadata);
    HolderResource {
        group: reference.group().to_owned(),
        resource: plural,
        namespace: metadata.map(|metadata| metadata.namespace.clone()).unwrap_or_default(),
        name: metadata.map(|metadata| metadata.name.clone()).unwrap_or_default(),
    }
}
