//! The archive as the graph uses it: objects that left the cluster and go on holding others. What becomes of one whose
//! target is deleted is a pure function, and so is the next step of one that is deleted itself ([`tombstone`]), as is
//! the search for those that wait for each other ([`cycle`]); the SQL behind the trait is in [`sql`].

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::deletion::Phase;
use kindex_model::object::{Object as Text, ResourceVersion};
use kindex_model::reference_name::ReferenceName;

use crate::decide::Seen;
use crate::object::{Edge, Key, KindName, Object};

pub mod tombstone;

pub mod cycle;

pub mod sql;

/// The archive does not answer, or not as it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the archive: {what}")]
pub struct ArchiveError {
    /// What was answered.
    pub what: String,
    /// Whether it cannot be reached, which the store reports once for all.
    pub is_outage: bool,
}

impl ArchiveError {
    /// An answer that is wrong.
    pub fn wrong(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            is_outage: false,
        }
    }
}

/// Where the holder of a reference is that is not in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderState {
    /// It is archived: its reference is a row now.
    Archived,
    /// It was archived and has been deleted since: it uses nothing any more.
    Deleted,
    /// Nobody knows: what it holds stays held.
    Unknown,
}

/// What became of a reference that was to be placed on what is archived under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementOutcome {
    /// This object has it.
    By {
        /// Which one.
        target: Seen,
        /// Whether it did not before.
        is_new: bool,
    },
    /// It is being deleted.
    Leaving,
    /// Nothing of that name is archived.
    Absent,
}

/// An object that refers to another one and is not in the cluster, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Where it was; `None` of one that nobody has.
    pub key: Option<Key>,
    /// Who it is.
    pub uid: String,
    /// The reference by which it holds; `None` where only a field names the object.
    pub reference: Option<ReferenceName>,
    /// In which version it was read; `None` where it is not archived.
    pub version: Option<ResourceVersion>,
    /// The objects that its fields name.
    pub edges: Vec<Edge>,
}

/// Holders that were archived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Those that have been deleted since. One that was restored is not among them as long as the restored object names
    /// the target and has no reference on it.
    pub deleted: Vec<ReferenceName>,
    /// Those that are archived still.
    pub archived: Vec<Holder>,
}

/// As people know it.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.key, &self.reference, self.version) {
            (Some(key), _, Some(_)) => write!(f, "{key} (archived)"),
            (Some(key), _, None) => write!(f, "{key}"),
            (None, Some(name), _) => write!(f, "{name} (not in the cluster)"),
            (None, None, _) => f.write_str(&self.uid),
        }
    }
}

/// Where a walk over the holders of an object goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HolderPosition {
    /// After this reference, among the rows on the object.
    Reference(String),
    /// In the objects that name it by the declared reference of this number, after the page with this token.
    Naming(usize, Option<String>),
}

/// Some of the holders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// In no particular order; the same one may come again.
    pub holders: Vec<Holder>,
    /// Where there may be more.
    pub next: Option<HolderPosition>,
}

/// Which holders of an object are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderScope {
    /// Those that have a row on it.
    Rows,
    /// These, and what is archived and names it.
    Archived,
    /// These, and whatever names it.
    All,
}

/// Objects that are not in the cluster.
#[async_trait]
pub trait Archive: Send + Sync {
    /// Keeps references on an object as rows, as far as their holders are archived, and says where each holder is.
    ///
    /// # Guarantees
    /// Whoever reads the holders of the object after this sees those that are archived, as long as they are.
    async fn keep(
        &self,
        target: &Seen,
        references: &[ReferenceName],
        now: Timestamp,
    ) -> Result<Vec<HolderState>, ArchiveError>;

    /// Places the reference of an object of the cluster on the archived object of that name, which may have it already.
    async fn hold(
        &self,
        target: &Key,
        reference: &ReferenceName,
        now: Timestamp,
    ) -> Result<PlacementOutcome, ArchiveError>;

    /// Whether the archived object of that name has a reference.
    async fn has_reference(&self, target: &Key, reference: &ReferenceName) -> Result<bool, ArchiveError>;

    /// Whether an archived object names this one by a field; `None` where it is not archived.
    async fn names(&self, holder: &Object, target: &Key) -> Result<Option<bool>, ArchiveError>;

    /// Those of these holders of an object, at most a page of them, that were archived.
    async fn left(&self, target: &Object, holders: &[ReferenceName]) -> Result<Left, ArchiveError>;

    /// Writes to an archived holder that it uses an object no more. Says whether that is written: not if the holder has
    /// changed since it was read, or if nobody can read what it names. A move that was about to let it name that object
    /// again starts over. What is written already is not written again.
    async fn detach(&self, holder: &Holder, former: &str, now: Timestamp) -> Result<bool, ArchiveError>;

    /// A page of the rows on an object, and then of what names it.
    async fn holders(
        &self,
        target: &Seen,
        scope: HolderScope,
        after: Option<&HolderPosition>,
    ) -> Result<Page, ArchiveError>;

    /// Deletes archived objects that go with another one and are as they were read, with all that they hold.
    /// Returns the uids of those that are gone: others hold the rest, or somebody has changed it, or it is a tombstone
    /// now, because others name it, it holds objects of other services, or its kind has a cleanup.
    async fn delete(&self, with: &Seen, holders: &[&Holder], now: Timestamp) -> Result<Vec<String>, ArchiveError>;

    /// Releases a row on an object.
    async fn release(&self, target: &Seen, reference: &ReferenceName) -> Result<(), ArchiveError>;

    /// The uids of some of a kind's tombstones, archived objects that are deleted while others hold them, in order of
    /// uid after one of them. None at the end.
    async fn tombstones(&self, kind: &KindName, after: &str) -> Result<Vec<String>, ArchiveError>;

    /// One of them, as it is now.
    async fn tombstone(&self, kind: &KindName, uid: &str) -> Result<Option<Object>, ArchiveError>;

    /// The text of one of them, as it is now, in the version that its kind declares.
    async fn tombstone_text(&self, kind: &KindName, uid: &str) -> Result<Option<Text>, ArchiveError>;

    /// Who waits for an object: the tombstones that it holds, and what is deleted in the cluster and held by it, as far
    /// as SQL knows that. References that the cluster alone has count where a field says the same.
    async fn waiting_for(&self, holder: &Seen) -> Result<Vec<Seen>, ArchiveError>;

    /// Whether an archived object is the last one that had its name: fields with this name mean it.
    async fn has_its_name(&self, seen: &Seen) -> Result<bool, ArchiveError>;

    /// Whether an object that is not being deleted, and that no field names, has a row of one whose fields may name it:
    /// the object was moved from there. Also where it was restored a moment ago, and the new object has the reference.
    async fn has_former(&self, holder: &Object) -> Result<bool, ArchiveError>;

    /// Whether an object has rows on others.
    async fn holds(&self, uid: &str) -> Result<bool, ArchiveError>;

    /// Records the phase of a tombstone that is as it was read, with its deletionTimestamp. Whether it was.
    async fn record(&self, object: &Object, phase: Phase, now: Timestamp) -> Result<bool, ArchiveError>;

    /// Ends the deletion of an archived object that is as it was read and that nothing holds, and releases all that it
    /// holds. Whether it is gone.
    async fn end(&self, object: &Object, now: Timestamp) -> Result<bool, ArchiveError>;

    /// Releases all rows that an object of the cluster has on others.
    async fn release_all(&self, holder: &ReferenceName, now: Timestamp) -> Result<(), ArchiveError>;
}

/// What is done about an archived holder of an object that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderAction {
    /// It is deleted.
    Delete,
    /// The object waits for it in its first phase.
    WaitFor,
    /// The object owns it and waits for it while it drains.
    WaitForOwned,
}

/// What is done about it, as its fields are now.
///
/// # Guarantees
/// `Delete` is decided only for what is archived and names the object, once the phase is recorded in which it is to go.
pub fn action_on(holder: &Holder, target: &Key, phase: Option<Phase>) -> HolderAction {
    let mut edges = holder.edges.iter().filter(|edge| edge.target == *target).peekable();
    match edges.peek().is_some() && edges.all(|edge| edge.owned) {
        _ if holder.version.is_some() && is_deleted_with(&holder.edges, target, phase) => HolderAction::Delete,
        true => HolderAction::WaitForOwned,
        false => HolderAction::WaitFor,
    }
}

/// Whether an object with these fields goes with a target that is deleted and has recorded this phase.
pub(crate) fn is_deleted_with(edges: &[Edge], target: &Key, phase: Option<Phase>) -> bool {
    let mut naming = edges.iter().filter(|edge| edge.target == *target);
    naming.any(|edge| match phase {
        None => false,
        Some(Phase::Deleting) => edge.cascades(),
        Some(Phase::Draining | Phase::Finalizing) => edge.cascades() || edge.owned,
    })
}

#[cfg(test)]
mod tests {
    use kindex_model::reference::OnDelete;

    use super::HolderAction::{Delete, WaitFor, WaitForOwned};
    use super::*;
    use crate::fixture::key;

    fn holder(owned: bool, on_delete: OnDelete) -> Holder {
        let edge = Edge {
            reference: "network",
            target: key("Network", "a"),
            owned,
            on_delete,
        };
        Holder {
            key: Some(key("Network", "h")),
            uid: "h".to_owned(),
            reference: None,
            version: Some(ResourceVersion(7)),
            edges: vec![edge],
        }
    }

    #[test]
    fn an_archived_holder_goes_with_its_target_only_in_the_phase_that_takes_it_along() {
        let phases = [
            None,
            Some(Phase::Deleting),
            Some(Phase::Draining),
            Some(Phase::Finalizing),
        ];
        let actions =
            |holder: &Holder, target: &str| phases.map(|phase| action_on(holder, &key("Network", target), phase));
        let (cascades, blocks) = (holder(false, OnDelete::Cascade), holder(false, OnDelete::Block));
        assert_eq!(actions(&cascades, "a"), [WaitFor, Delete, Delete, Delete]);
        assert_eq!(actions(&blocks, "a"), [WaitFor; 4]);
        let owned = holder(true, OnDelete::Cascade);
        assert_eq!(actions(&owned, "a"), [WaitForOwned, WaitForOwned, Delete, Delete]);
        for other in [&cascades, &owned] {
            assert_eq!(actions(other, "b"), [WaitFor; 4], "its field names another object");
        }
        let elsewhere = Holder {
            version: None,
            ..cascades
        };
        assert_eq!(actions(&elsewhere, "a"), [WaitFor; 4], "it is not archived");
    }
}
