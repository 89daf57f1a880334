//! One object that is not settled yet, and the position up to which all are.
//! Knows no queue: where an object waits is the business of the modules below.

use std::collections::BTreeSet;
use std::time::Duration;

use kindex_kube_client::ObjectName;
use kindex_model::head::Head;
use kindex_model::object::{Object, ResourceVersion, Uid};

use super::super::decide::{Asked, Observed, Row};
use super::super::message::Effect;

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

/// What wakes an entry that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// Decide on what is known.
    Decide,
    /// Ask the cluster first: an effect failed and its outcome may be unknown.
    Ask,
}

/// Where an entry is.
#[derive(Clone, Debug)]
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
    EffectQueued(Box<Effect>),
    /// An effect is under way.
    Effect,
}

/// A write to the cluster that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The version of the object that it replaces.
    pub(super) replaces: ResourceVersion,
    /// The newest version that the cluster had told when it went out.
    pub(super) newest: ResourceVersion,
}

impl Sent {
    /// Whether the version that it made is one that the cluster had left behind before. A write
    /// that changes nothing makes none.
    pub(super) fn made_in_the_past(self, answered: ResourceVersion) -> bool {
        answered > self.replaces && answered <= self.newest
    }
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
    /// The row on which a question is under way.
    pub(super) asking: Option<Row>,
    pub(super) asked: Asked,
    pub(super) sent: Option<Sent>,
    /// A write of ours had an unknown outcome, and none was committed since.
    pub(super) write_unsure: bool,
    /// Position of the oldest event that is not settled.
    pub(super) oldest: ResourceVersion,
    /// Arrival of the oldest observation that is not stored.
    pub(super) arrived: Duration,
    pub(super) leaving_since: Option<Duration>,
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
            asking: None,
            asked: Asked::Unknown,
            sent: None,
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

    /// The newest that is known.
    pub(super) fn newest(&self) -> &Observation {
        &self.newest
    }

    /// Takes what replaces it, whatever is under way.
    pub(super) fn learn(&mut self, newest: Observation) {
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
}

/// How far the stream of events has been received, and up to where all of it is settled.
#[derive(Debug, Default)]
pub(super) struct Position {
    seen: ResourceVersion,
    outstanding: BTreeSet<(ResourceVersion, Uid)>,
}

impl Position {
    /// No position is below: 0 is no version.
    pub(super) const FIRST: ResourceVersion = ResourceVersion(1);

    /// The newest version received.
    pub(super) fn seen(&self) -> ResourceVersion {
        self.seen
    }

    /// Everything up to this version has been received.
    pub(super) fn advance(&mut self, version: ResourceVersion) {
        self.seen = self.seen.max(version);
    }

    /// Starts anew, after a full list.
    pub(super) fn restart(&mut self, version: ResourceVersion) {
        self.seen = version;
    }

    pub(super) fn begin(&mut self, version: ResourceVersion, uid: &Uid) {
        self.outstanding.insert((version, uid.clone()));
    }

    pub(super) fn settle(&mut self, version: ResourceVersion, uid: &Uid) {
        self.outstanding.remove(&(version, uid.clone()));
    }

    /// The highest version up to which every event is settled: where a watch may resume
    /// after a crash without missing anything. `None` where there is no such version yet.
    pub(super) fn watermark(&self) -> Option<ResourceVersion> {
        let settled = match self.outstanding.first() {
            Some((oldest, _)) => ResourceVersion(oldest.0.saturating_sub(1)).min(self.seen),
            None => self.seen,
        };
        (settled >= Self::FIRST).then_some(settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watermark_stays_below_the_oldest_unsettled_event() {
        let mut position = Position::default();
        for version in 5..=8 {
            position.begin(ResourceVersion(version), &Uid::from("a"));
            position.advance(ResourceVersion(version));
        }
        position.settle(ResourceVersion(6), &Uid::from("a"));
        assert_eq!(position.watermark(), Some(ResourceVersion(4)));
        position.settle(ResourceVersion(5), &Uid::from("a"));
        assert_eq!(position.watermark(), Some(ResourceVersion(6)));
        for version in 7..=8 {
            position.settle(ResourceVersion(version), &Uid::from("a"));
        }
        assert_eq!(position.watermark(), Some(ResourceVersion(8)));
    }

    #[test]
    fn there_is_no_watermark_below_the_first_version() {
        let mut position = Position::default();
        position.begin(ResourceVersion(1), &Uid::from("a"));
        position.advance(ResourceVersion(1));
        assert_eq!(position.watermark(), None, "0 is no version to resume from");
        position.settle(ResourceVersion(1), &Uid::from("a"));
        assert_eq!(position.watermark(), Some(ResourceVersion(1)));
    }
}
