//! One object that is not settled yet: the newest that is known of it in the cluster and in SQL, and how an answer
//! changes that. Knows no queue: where an object waits is the business of the modules below.

use std::time::Duration;

use kindex_decide::ingest::{Asked, Observed};
use kindex_decide::row::Row;
use kindex_kube_client::ObjectName;
use kindex_model::head::Head;
use kindex_model::object::{Object, ResourceVersion, Uid};

/// The newest that is known of a uid in the cluster.
#[derive(Clone, Debug)]
pub(super) enum Observation {
    Present(Object),
    /// With its last text, where there is one.
    Gone(Option<Object>),
}

impl Observation {
    pub(super) fn version(&self) -> Option<ResourceVersion> {
        match self {
            Self::Present(object) | Self::Gone(Some(object)) => Some(object.metadata.resource_version),
            Self::Gone(None) => None,
        }
    }

    /// Whether `self` adds to what is known: versions only grow.
    pub(super) fn supersedes(&self, known: &Self) -> bool {
        match (known, self) {
            (Self::Present(_), Self::Gone(_)) => true,
            (Self::Gone(_) | Self::Present(_), Self::Gone(_) | Self::Present(_)) => self.version() > known.version(),
        }
    }

    /// What is known with both. A uid that is gone never returns: what the watch still tells of it is its last text.
    /// Where no text is known, the object was only missed.
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

    /// Whether the object goes or is gone. Another process may have let it go, and have said in SQL
    /// before that it did: what is known of the row from earlier does not count.
    pub(super) fn is_going(&self) -> bool {
        match self {
            Self::Present(object) => object.metadata.deletion_timestamp.is_some(),
            Self::Gone(_) => true,
        }
    }
}

/// An observation on its way from the intake to what is pending.
#[derive(Debug)]
pub(super) struct Sighting {
    pub(super) uid: Uid,
    pub(super) name: ObjectName,
    pub(super) observation: Observation,
    /// The position in the stream that it came with.
    pub(super) at: ResourceVersion,
}

impl Sighting {
    /// An object that the cluster shows.
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

/// What wakes an entry that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// Decide on what is known.
    Decide,
    /// Ask the cluster first: an effect failed and its outcome may be unknown.
    Ask,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In the queue.
    Queued,
    /// In one half of a batch that the database refused.
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

#[derive(Clone, Debug)]
pub(super) struct Entry {
    newest: Observation,
    /// The newest version in which the object was seen while it was there.
    seen: Option<ResourceVersion>,
    pub(super) name: ObjectName,
    /// The row, where it is known without reading it.
    pub(super) row: Option<Option<Row>>,
    /// The row that made us ask, and on which `newest` is the answer.
    pub(super) confirmed: Option<Row>,
    pub(super) asked: Asked,
    /// A write of ours had an unknown outcome, and none was committed since.
    pub(super) write_unsure: bool,
    /// Position of the oldest event that is not settled.
    pub(super) oldest: ResourceVersion,
    /// Arrival of the oldest observation that is not stored.
    pub(super) arrived: Duration,
    leaving_since: Option<Duration>,
    /// It waits for finalizers of others.
    pub(super) held: bool,
    pub(super) attempts: u32,
    pub(super) state: State,
    /// `newest` is younger than the decision that is being carried out.
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
            asked: Asked::Unknown,
            write_unsure: false,
            oldest,
            arrived,
            leaving_since: None,
            held: false,
            attempts: 0,
            state: State::Queued,
            overtaken: false,
        }
    }

    /// Whether the object waits for its time, and not because something failed.
    pub(super) fn waits_as_it_should(&self) -> bool {
        self.attempts == 0 && matches!(self.state, State::Waiting(..))
    }

    /// Whether it waits for finalizers of others, with its row up to date.
    pub(super) fn is_held(&self) -> bool {
        self.held && self.waits_as_it_should()
    }

    /// Replaces what is known; the decision that is under way, if any, is outdated, and the row of
    /// an object that goes is read once more.
    pub(super) fn replace(&mut self, newest: Observation) {
        self.learn(newest);
        if self.newest.is_going() {
            self.row = None;
        }
        self.confirmed = None;
        self.overtaken = true;
    }

    /// Takes the cluster's answer to a question that was asked because of the row `doubted`. It is the truth, unless
    /// the watch was faster with something newer.
    pub(super) fn answer(&mut self, answer: Observation, doubted: Option<Row>) {
        if !self.overtaken || answer.supersedes(&self.newest) {
            self.learn(answer);
            self.confirmed = doubted;
        }
        self.row = None;
    }

    /// Takes the version that a write of ours made, unless the watch was faster with something newer.
    pub(super) fn change(&mut self, object: Object, now: Duration) {
        let changed = Observation::Present(object);
        if changed.supersedes(&self.newest) {
            self.replace(changed);
            self.arrived = now;
        }
    }

    /// Takes the version that our delete made of an object that stays for its finalizers.
    pub(super) fn leave_on_our_word(&mut self, object: Object) {
        self.asked = Asked::Accepted(object.metadata.resource_version);
        let left = Observation::Present(object);
        if left.supersedes(&self.newest) {
            // It goes on our word: nobody else's is in the row.
            let row = self.row;
            self.replace(left);
            self.row = row;
        }
    }

    /// The newest that is known.
    pub(super) fn newest(&self) -> &Observation {
        &self.newest
    }

    /// Takes what replaces it, whatever is under way.
    fn learn(&mut self, newest: Observation) {
        self.seen = self.seen.max(newest.seen());
        self.newest = newest.after(&self.newest);
    }

    /// The last text of an object that is gone is safe elsewhere, and the row does without.
    pub(super) fn drop_last_text(&mut self) {
        self.newest = Observation::Gone(None);
    }

    /// Whether the object is gone, and was not seen to be before it was asked for.
    pub(super) fn is_told_gone(&self) -> bool {
        matches!(&self.newest, Observation::Gone(Some(last)) if Some(last.metadata.resource_version) > self.seen)
    }

    /// Whether a row that was asked for before the object went must be asked for again.
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

    /// A decision on what is known begins: it is of now, and counts how long the object has been seen leaving.
    pub(super) fn begin_decision(&mut self, leaving: bool, now: Duration) -> Duration {
        self.overtaken = false;
        self.held = false;
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
        let Sighting {
            name, observation, at, ..
        } = Sighting::present(object(version));
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
        let mut asked = entry(5);
        asked.answer(Observation::Present(object(4)), Some(ROW));
        assert_eq!(
            (version(&asked), asked.confirmed),
            (Some(4), Some(ROW)),
            "the cluster says so"
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
    fn what_goes_on_our_word_keeps_its_row() {
        let mut ours = entry(5);
        ours.row = Some(Some(ROW));
        let going = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"6",
            "deletionTimestamp":"2026-01-01T00:00:00Z"}}"#;
        let going = Object::parse_str(going).expect("an object");
        let mut others = ours.clone();
        ours.leave_on_our_word(going.clone());
        assert_eq!(ours.row, Some(Some(ROW)));
        assert_eq!(ours.asked, Asked::Accepted(ResourceVersion(6)));
        others.replace(Observation::Present(going));
        assert_eq!(others.row, None, "somebody else may have closed it");
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
