//! One object that is not settled yet: its newest known state in the cluster and in SQL, and how answers change it.
//! Queues are in the modules below.

use std::sync::Arc;
use std::time::Duration;

use kindex_decide::ingest::{Observed, OwnDelete, OwnedObjects};
use kindex_decide::row::Row;
use kindex_kube_client::ObjectName;
use kindex_model::head::Head;
use kindex_model::object::{Object, ResourceVersion, Uid};

/// The newest known state of a uid in the cluster.
#[derive(Clone, Debug)]
pub(super) enum Observation {
    Present(Object),
    /// With its last text, if known.
    Gone(Option<Object>),
}

impl Observation {
    pub(super) fn version(&self) -> Option<ResourceVersion> {
        match self {
            Self::Present(object) | Self::Gone(Some(object)) => Some(object.metadata.resource_version),
            Self::Gone(None) => None,
        }
    }

    /// Whether `self` is newer than `known`.
    pub(super) fn supersedes(&self, known: &Self) -> bool {
        match (known, self) {
            (Self::Present(_), Self::Gone(_)) => true,
            (Self::Gone(_) | Self::Present(_), Self::Gone(_) | Self::Present(_)) => self.version() > known.version(),
        }
    }

    /// Combines both. A uid that is gone never returns: a later event only brings its last text. An object that is gone
    /// without a text was missing from a list.
    fn after(self, known: &Self) -> Self {
        match (self, known) {
            (Self::Gone(None), known) => Self::Gone(known.object().cloned()),
            (Self::Present(object), Self::Gone(Some(_))) => Self::Gone(Some(object)),
            (new, _) => new,
        }
    }

    fn seen(&self) -> Option<ResourceVersion> {
        match self {
            Self::Present(object) => Some(object.metadata.resource_version),
            Self::Gone(_) => None,
        }
    }

    pub(super) fn object(&self) -> Option<&Object> {
        match self {
            Self::Present(object) => Some(object),
            Self::Gone(last) => last.as_ref(),
        }
    }

    /// Whether the object is being deleted or is gone. Another process may have released it and written its row before,
    /// so that the row must be read again.
    pub(super) fn is_going(&self) -> bool {
        match self {
            Self::Present(object) => object.metadata.deletion_timestamp.is_some(),
            Self::Gone(_) => true,
        }
    }
}

/// An observation that the intake passes on.
#[derive(Debug)]
pub(super) struct ObservedObject {
    pub(super) uid: Uid,
    pub(super) name: ObjectName,
    pub(super) observation: Observation,
    /// The version of its event.
    pub(super) at: ResourceVersion,
}

impl ObservedObject {
    /// A present object.
    pub(super) fn present(object: Object) -> Self {
        Self::of(object, Observation::Present)
    }

    /// The last text of an object that is gone.
    pub(super) fn gone(object: Object) -> Self {
        Self::of(object, |last| Observation::Gone(Some(last)))
    }

    fn of(object: Object, observation: impl FnOnce(Object) -> Observation) -> Self {
        Self {
            uid: object.metadata.uid.clone(),
            name: ObjectName::of(&object),
            at: object.metadata.resource_version,
            observation: observation(object),
        }
    }
}

/// What an entry does after its pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// Decide on the known state.
    Decide,
    /// Read the object from the cluster first: an effect failed, and its outcome may be unknown.
    Ask,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In the queue.
    Queued,
    /// In one half of a batch that the database rejected.
    Grouped,
    /// In a batch that is being read or written.
    Batch,
    /// Until this moment.
    Waiting(Duration, Resume),
    /// In the queue of effects.
    EffectQueued,
    /// An effect is in flight.
    Effect,
}

/// Counts an entry in the [`UnservedCount`] that gave it, until it is dropped.
pub(super) type UnservedMark = Arc<()>;

/// How many entries wait for a CRD: as many as there are marks, each of which an entry keeps for as long as it does. So
/// nobody goes through all entries to count them.
#[derive(Debug, Default)]
pub(super) struct UnservedCount(UnservedMark);

impl UnservedCount {
    pub(super) fn mark(&self) -> UnservedMark {
        self.0.clone()
    }

    pub(super) fn get(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    newest: Observation,
    /// The newest version in which the object was seen while it was there.
    seen: Option<ResourceVersion>,
    pub(super) name: ObjectName,
    /// The row, if it is known.
    pub(super) row: Option<Option<Row>>,
    /// The row that `newest` was read to confirm.
    pub(super) confirmed: Option<Row>,
    pub(super) own_delete: OwnDelete,
    pub(super) owned_objects: OwnedObjects,
    /// How often in a row it was found that the object owns others.
    pub(super) owned_found: u32,
    /// Whether a write had an unknown outcome, and none was committed since.
    pub(super) write_unsure: bool,
    /// Version of the oldest event that is not settled.
    pub(super) oldest: ResourceVersion,
    /// Arrival of the oldest observation that is not stored.
    pub(super) arrived: Duration,
    leaving_since: Option<Duration>,
    /// Whether it waits for finalizers of others.
    pub(super) held: bool,
    /// There while its last effect failed because the cluster does not serve the kind.
    pub(super) unserved: Option<UnservedMark>,
    pub(super) attempts: u32,
    pub(super) state: State,
    /// Whether `newest` is newer than the decision that is being carried out.
    pub(super) overtaken: bool,
}

impl Entry {
    pub(super) fn new(newest: Observation, name: ObjectName, oldest: ResourceVersion, arrived: Duration) -> Self {
        Self {
            seen: newest.seen(),
            newest,
            name,
            row: None,
            confirmed: None,
            own_delete: OwnDelete::Unknown,
            owned_objects: OwnedObjects::Unknown,
            owned_found: 0,
            write_unsure: false,
            oldest,
            arrived,
            leaving_since: None,
            held: false,
            unserved: None,
            attempts: 0,
            state: State::Queued,
            overtaken: false,
        }
    }

    /// Whether the object waits for a delay, and not because of a failure.
    pub(super) fn is_delayed(&self) -> bool {
        self.attempts == 0 && matches!(self.state, State::Waiting(..))
    }

    /// Whether it waits for finalizers of others, with its row up to date.
    pub(super) fn is_held(&self) -> bool {
        self.held && self.is_delayed()
    }

    /// Replaces the known state. A decision that is in flight becomes outdated. The row of an object that is being
    /// deleted is read again.
    pub(super) fn replace(&mut self, newest: Observation) {
        self.learn(newest);
        if self.newest.is_going() {
            self.row = None;
        }
        self.owned_objects = OwnedObjects::Unknown;
        self.confirmed = None;
        self.unserved = None;
        self.overtaken = true;
    }

    /// Takes the object as it was read from the cluster to confirm the row `doubted`, unless the watch has delivered
    /// something newer.
    pub(super) fn answer(&mut self, answer: Observation, doubted: Option<Row>) {
        if !self.overtaken || answer.supersedes(&self.newest) {
            self.learn(answer);
            self.confirmed = doubted;
        }
        self.unserved = None;
        self.forget_rows();
    }

    /// Forgets its row, and those of what the object owns: they are read again.
    pub(super) fn forget_rows(&mut self) {
        self.row = None;
        self.owned_objects = OwnedObjects::Unknown;
    }

    /// Takes the answer to whether a live row, or an object in the cluster, names the object as its owner, unless the
    /// watch has delivered something newer since.
    pub(super) fn find_owned(&mut self, is_found: bool) {
        // An answer from before says nothing about the newer observation, for which both are asked again.
        if self.overtaken {
            return;
        }
        (self.owned_objects, self.owned_found) = match is_found {
            true => (OwnedObjects::Live, self.owned_found.saturating_add(1)),
            false => (OwnedObjects::Absent, 0),
        };
    }

    /// Takes the version that our write made, unless the watch has delivered something newer.
    pub(super) fn change(&mut self, object: Object, now: Duration) {
        let changed = Observation::Present(object);
        if changed.supersedes(&self.newest) {
            self.replace(changed);
            self.arrived = now;
        }
    }

    /// Takes the version that our delete made of an object that stays for its finalizers.
    pub(super) fn leave_by_our_delete(&mut self, object: Object) {
        self.own_delete = OwnDelete::Accepted(object.metadata.resource_version);
        let left = Observation::Present(object);
        if left.supersedes(&self.newest) {
            // Our own delete: the row is already up to date.
            let row = self.row;
            self.replace(left);
            self.row = row;
        }
    }

    /// The newest known state.
    pub(super) fn newest(&self) -> &Observation {
        &self.newest
    }

    /// Replaces the known state.
    fn learn(&mut self, newest: Observation) {
        self.seen = self.seen.max(newest.seen());
        self.newest = newest.after(&self.newest);
    }

    /// Drops the last text of an object that is gone: it is quarantined, and the row is closed without it.
    pub(super) fn drop_last_text(&mut self) {
        self.newest = Observation::Gone(None);
    }

    /// Whether the object is gone, and was not known to be when it was read.
    pub(super) fn is_reported_gone(&self) -> bool {
        matches!(&self.newest, Observation::Gone(Some(last)) if Some(last.metadata.resource_version) > self.seen)
    }

    /// Whether a row that was read before the object left must be read again.
    pub(super) fn outdates_rows(&self) -> bool {
        self.overtaken && self.newest.is_going()
    }

    pub(super) fn observed(&self, head: impl Fn(&Object) -> Head) -> Observed {
        match &self.newest {
            Observation::Present(object) => Observed::Present(head(object)),
            Observation::Gone(last) => Observed::Gone {
                last: last.as_ref().map(head),
                seen: self.seen,
            },
        }
    }

    /// Begins a decision on the known state. Returns how long the object has been leaving.
    pub(super) fn begin_decision(&mut self, leaving: bool, now: Duration) -> Duration {
        self.overtaken = false;
        self.held = false;
        self.unserved = None;
        if !leaving {
            self.leaving_since = None;
            return Duration::ZERO;
        }
        now - *self.leaving_since.get_or_insert(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kindex_query::Life;

    use kindex_decide::row::RowText;
    use kindex_model::row_version::RowVersion;

    fn object(version: u64) -> Object {
        let text = format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"{version}"}}}}"#);
        Object::parse_str(&text).expect("an object")
    }

    fn entry(version: u64) -> Entry {
        let ObservedObject {
            name, observation, at, ..
        } = ObservedObject::present(object(version));
        Entry::new(observation, name, at, Duration::ZERO)
    }

    fn version(entry: &Entry) -> Option<u64> {
        entry.newest().version().map(|version| version.0)
    }

    const ROW: Row = Row {
        version: RowVersion::Cluster(ResourceVersion(9)),
        life: Life::Deleted,
        text: RowText::Trusted,
    };

    #[test]
    fn an_answer_is_believed_unless_the_watch_was_faster() {
        let mut read = entry(5);
        read.answer(Observation::Present(object(4)), Some(ROW));
        assert_eq!(
            (version(&read), read.confirmed),
            (Some(4), Some(ROW)),
            "the cluster returned it"
        );

        let mut overtaken = entry(5);
        overtaken.replace(Observation::Present(object(6)));
        overtaken.answer(Observation::Present(object(5)), Some(ROW));
        assert_eq!((version(&overtaken), overtaken.confirmed), (Some(6), None));
        overtaken.answer(Observation::Present(object(7)), Some(ROW));
        assert_eq!((version(&overtaken), overtaken.confirmed), (Some(7), Some(ROW)));
    }

    #[test]
    fn what_our_write_made_never_hides_what_others_wrote_since() {
        let mut entry = entry(5);
        entry.change(object(6), Duration::from_secs(1));
        assert_eq!(version(&entry), Some(6));
        entry.replace(Observation::Present(object(8)));
        entry.change(object(7), Duration::from_secs(2));
        assert_eq!((version(&entry), entry.arrived), (Some(8), Duration::from_secs(1)));
    }

    #[test]
    fn an_object_that_we_delete_keeps_its_row() {
        let mut ours = entry(5);
        ours.row = Some(Some(ROW));
        let going = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"6",
            "deletionTimestamp":"2026-01-01T00:00:00Z"}}"#;
        let going = Object::parse_str(going).expect("an object");
        let mut others = ours.clone();
        ours.leave_by_our_delete(going.clone());
        assert_eq!(ours.row, Some(Some(ROW)));
        assert_eq!(ours.own_delete, OwnDelete::Accepted(ResourceVersion(6)));
        others.replace(Observation::Present(going));
        assert_eq!(others.row, None, "another process may have closed it");
    }

    #[test]
    fn what_is_gone_keeps_the_newest_text() {
        let mut entry = entry(5);
        entry.replace(Observation::Gone(None));
        assert_eq!(version(&entry), Some(5));
        entry.replace(Observation::Present(object(6)));
        assert!(
            matches!(entry.newest(), Observation::Gone(Some(_))),
            "a uid never returns"
        );
        assert_eq!(version(&entry), Some(6));
    }

    #[test]
    fn the_time_of_leaving_counts_from_first_sight_and_anew_after_a_change_of_mind() {
        let mut entry = entry(5);
        let mut left_for = |leaving, now| entry.begin_decision(leaving, Duration::from_secs(now)).as_secs();
        assert_eq!(left_for(true, 10), 0);
        assert_eq!(left_for(true, 14), 4);
        assert_eq!(left_for(false, 15), 0);
        assert_eq!(left_for(true, 20), 0);
    }
}
