//! Polls the changes of archived objects for all watches of a server: one small query per interval. Also saves marks,
//! by which a watch that begins at a version of the cluster knows which of these changes its client has seen.
//!
//! A mark is the version that the cluster had [`Pace::settled`] after a change was seen. A watch buffers events of the
//! cluster until SQL has been polled within [`Pace::fresh`], and sends known changes first. So a client that received a
//! version after the mark has received the change before. The difference between the two times covers databases of
//! several servers, of which one may show a commit later than another.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use kindex_model::kind::Kind;
use kindex_model::object::ResourceVersion;
use kindex_store::{Changes, MetadataStorage, Position, StoreError};
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::timeout;

use super::moved::{self, Chunk};
use crate::operations::cluster::Upstream;
use crate::operations::{Caller, Reason, Refusal, refusal};

/// How long a watch waits for a database that does not answer.
const WAIT: Duration = Duration::from_secs(30);
/// How long one that begins does.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for the cluster's version; there will be a next time.
const WATERMARK_TIMEOUT: Duration = Duration::from_secs(1);

/// How closely changes in SQL are followed.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How often the database is asked where nobody says that there is something new.
    pub every: Duration,
    /// For how long its answer counts.
    pub fresh: Duration,
    /// After so long everybody has seen a change. Longer than `fresh`, by more than one server of a database may be
    /// behind another.
    pub settled: Duration,
    /// How often the events of a kind are read while somebody subscribes to them.
    pub events: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            every: Duration::from_millis(500),
            fresh: Duration::from_secs(2),
            settled: Duration::from_secs(10),
            events: Duration::from_millis(100),
        }
    }
}

/// What is known of the changes, for all watches.
pub(in super::super) struct Feed {
    store: Arc<dyn MetadataStorage>,
    upstream: Arc<Upstream>,
    known: watch::Receiver<Known>,
    nudge: Arc<Notify>,
    pace: Pace,
    /// Most changes that are read together.
    at_once: u32,
    /// The last that was read of each kind: most watches are at the same place.
    chunks: HashMap<&'static str, Mutex<Option<Arc<Chunk>>>>,
}

/// How far the kinds have come.
#[derive(Clone, Default)]
struct Known {
    /// When that was asked.
    at: Option<Instant>,
    positions: HashMap<String, Position>,
}

impl Known {
    fn of(&self, kind: &Kind) -> Position {
        self.positions.get(kind.name).copied().unwrap_or_default()
    }

    fn is_younger_than(&self, age: Duration) -> bool {
        self.at.is_some_and(|at| at.elapsed() < age)
    }
}

impl Feed {
    /// Follows the database until nobody has the feed any more.
    ///
    /// # Assumptions
    /// Runs inside a Tokio runtime.
    pub(in super::super) fn start(
        store: Arc<dyn MetadataStorage>,
        upstream: Arc<Upstream>,
        kinds: &'static [&'static Kind],
        pace: Pace,
        at_once: u32,
    ) -> Arc<Self> {
        let (to, known) = watch::channel(Known::default());
        let nudge = Arc::new(Notify::new());
        let poll = Poll {
            store: store.clone(),
            upstream: upstream.clone(),
            kinds,
            pace,
            watermarks: Watermarks::default(),
        };
        tokio::spawn(poll.run(to, nudge.clone()));
        Arc::new(Self {
            store,
            upstream,
            known,
            nudge,
            pace,
            at_once,
            chunks: kinds.iter().map(|kind| (kind.name, Mutex::default())).collect(),
        })
    }

    /// There is something new: nobody has to wait for the next question.
    pub(in super::super) fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// For a client that has seen all that there is at this moment.
    pub(super) async fn from_now(self: &Arc<Self>, kind: &'static Kind) -> Result<Follower, Refusal> {
        let mut follower = Follower {
            feed: self.clone(),
            kind,
            position: Position::default(),
            last: Position::default(),
            known: self.known.clone(),
        };
        let position = follower.fresh(FIRST_READ_TIMEOUT).await;
        follower.position = position.map_err(|error| {
            let message = format!("the database does not answer: {error}; try again");
            Refusal::try_again(Reason::ServiceUnavailable, message)
        })?;
        Ok(follower)
    }

    /// For a client that has seen what the cluster had at this version.
    pub(super) async fn since(
        self: &Arc<Self>,
        kind: &'static Kind,
        version: ResourceVersion,
    ) -> Result<Follower, Refusal> {
        let mut follower = self.from_now(kind).await?;
        let last = follower.position;
        if last == Position::default() {
            return Ok(follower);
        }
        let failed = |error| refusal::of_query(&error);
        let seen = self.store.watermark_before(kind, version).await.map_err(failed)?;
        follower.position = seen.unwrap_or_default();
        let are_kept = self
            .store
            .changes(kind, follower.position, 1)
            .await
            .map_err(failed)?
            .is_some();
        match are_kept {
            true => Ok(follower),
            false => Err(Refusal::too_old(&version.to_string())),
        }
    }

    /// What comes after a position, as it was at `since` or later.
    async fn chunk(&self, kind: &'static Kind, after: Position, since: Instant) -> io::Result<Arc<Chunk>> {
        let mut last = self.chunks[kind.name].lock().await;
        if let Some(chunk) = last
            .as_ref()
            .filter(|chunk| chunk.after == after && chunk.began >= since)
        {
            return Ok(chunk.clone());
        }
        let chunk = Arc::new(moved::read(&*self.store, &self.upstream, kind, after, self.at_once).await?);
        *last = Some(chunk.clone());
        Ok(chunk)
    }
}

/// One watch's place among the changes of its kind.
pub(super) struct Follower {
    feed: Arc<Feed>,
    kind: &'static Kind,
    /// Up to here all is told.
    position: Position,
    /// Up to here there was something, when that was asked.
    last: Position,
    known: watch::Receiver<Known>,
}

impl Follower {
    /// Waits until there are changes that were not told.
    pub(super) async fn moved(&mut self) -> io::Result<()> {
        let (kind, position) = (self.kind, self.position);
        let moved = self.known.wait_for(|known| known.of(kind) > position).await;
        moved.map(drop).map_err(io::Error::other)
    }

    /// Whether there are any, as it was a moment ago.
    pub(super) async fn is_behind(&mut self) -> io::Result<bool> {
        Ok(self.fresh(WAIT).await? > self.position)
    }

    /// The next of them. Nothing else may be told until these are: it is known of each that the cluster has no object
    /// of its name.
    pub(super) async fn next(&mut self) -> io::Result<Arc<Chunk>> {
        // On the heap while it lasts: a watch at rest has no room for it.
        let chunk = Box::pin(self.feed.chunk(self.kind, self.position, Instant::now())).await?;
        self.position = chunk.upto;
        Ok(chunk)
    }

    async fn fresh(&mut self, wait: Duration) -> io::Result<Position> {
        let (kind, fresh) = (self.kind, self.feed.pace.fresh);
        let known = timeout(wait, self.known.wait_for(|known| known.is_younger_than(fresh))).await;
        let late = || {
            io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer within {} s", wait.as_secs()),
            )
        };
        let known = known.map_err(|_| late())?.map_err(io::Error::other)?.of(kind);
        if known < self.last {
            return Err(io::Error::other("the database has fewer changes than before"));
        }
        self.last = known;
        Ok(known)
    }
}

/// Polls the database.
struct Poll {
    store: Arc<dyn Changes>,
    upstream: Arc<Upstream>,
    kinds: &'static [&'static Kind],
    pace: Pace,
    watermarks: Watermarks,
}

impl Poll {
    async fn run(mut self, to: watch::Sender<Known>, nudge: Arc<Notify>) {
        loop {
            match self.poll().await {
                Ok(answer) => {
                    let settled = self.watermarks.settled(self.kinds, &answer, self.pace.settled);
                    to.send_replace(Known {
                        at: Some(answer.sent),
                        positions: answer.positions,
                    });
                    self.record_watermarks(settled).await;
                }
                Err(error) => tracing::debug!(%error, "The changes of archived objects cannot be read"),
            }
            tokio::select! {
                () = to.closed() => return,
                () = nudge.notified() => {}
                () = tokio::time::sleep(self.pace.every) => {}
            }
        }
    }

    async fn poll(&self) -> Result<Answer, StoreError> {
        let sent = Instant::now();
        let positions = self.store.positions().await?;
        Ok(Answer {
            sent,
            received: Instant::now(),
            positions,
        })
    }

    /// All at once: nothing new is heard meanwhile.
    async fn record_watermarks(&mut self, settled: Vec<(&'static Kind, Position)>) {
        let requests = settled
            .iter()
            .map(|(kind, position)| self.record_watermark(kind, *position));
        let recorded = join_all(requests.map(|request| timeout(WATERMARK_TIMEOUT, request))).await;
        for ((kind, position), recorded) in settled.into_iter().zip(recorded) {
            match recorded {
                Ok(Ok(())) => self.watermarks.save(kind, position),
                Ok(Err(error)) => tracing::debug!(%error, kind = kind.name, "A watermark is not recorded yet"),
                Err(_) => tracing::debug!(kind = kind.name, "A watermark is not recorded yet"),
            }
        }
    }

    async fn record_watermark(&self, kind: &'static Kind, position: Position) -> Result<(), Refusal> {
        let version = moved::version(&self.upstream, &Caller::default().on_behalf(), kind).await?;
        let recorded = self.store.record_watermark(kind, position, version).await;
        recorded.map_err(|error| refusal::of_query(&error))
    }
}

/// The result of a poll.
struct Answer {
    /// When it was sent: it contains what was committed before.
    sent: Instant,
    /// When it was received: its content was committed before.
    received: Instant,
    positions: HashMap<String, Position>,
}

/// The changes whose watermarks are to be recorded.
#[derive(Default)]
struct Watermarks {
    saved: HashMap<&'static str, Position>,
    /// The last change of a moment, and the moment.
    pending: HashMap<&'static str, (Position, Instant)>,
}

impl Watermarks {
    /// The changes that everybody has seen by now, and whose watermarks are not recorded.
    fn settled(&mut self, kinds: &[&'static Kind], answer: &Answer, after: Duration) -> Vec<(&'static Kind, Position)> {
        let mut settled = Vec::new();
        for kind in kinds.iter().copied().filter(|kind| kind.cluster) {
            let saved = self.saved.get(kind.name).copied().unwrap_or_default();
            if let Some(last) = answer.positions.get(kind.name).filter(|last| **last > saved) {
                let (position, seen) = *self.pending.entry(kind.name).or_insert((*last, answer.received));
                if answer.received.duration_since(seen) >= after {
                    settled.push((kind, position));
                }
            }
        }
        settled
    }

    fn save(&mut self, kind: &Kind, position: Position) {
        self.saved.insert(kind.name, position);
        self.pending.remove(kind.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::token::tests::KIND;

    fn answer(began: Instant, seconds: [u64; 2], position: u64) -> Answer {
        let [sent, received] = seconds.map(|second| began + Duration::from_secs(second));
        Answer {
            sent,
            received,
            positions: HashMap::from([(KIND.name.to_owned(), Position(position))]),
        }
    }

    /// The change may be of the last moment before the answer came.
    #[test]
    fn an_answer_that_was_long_under_way_is_no_sooner_settled() {
        let mut watermarks = Watermarks::default();
        let (began, after) = (Instant::now(), Duration::from_secs(10));
        let mut count = |seconds| watermarks.settled(&[&KIND], &answer(began, seconds, 3), after).len();
        assert_eq!([[0, 9], [10, 11], [12, 18], [18, 19]].map(&mut count), [0, 0, 0, 1]);
    }

    #[test]
    fn a_watermark_is_recorded_once_everybody_has_seen_the_change() {
        let mut watermarks = Watermarks::default();
        let (began, after) = (Instant::now(), Duration::from_secs(10));
        let mut at = |second, position, saved: bool| {
            let settled = watermarks.settled(&[&KIND], &answer(began, [second, second], position), after);
            let settled = settled.first().map(|(_, position)| *position);
            if let Some(position) = settled.filter(|_| saved) {
                watermarks.save(&KIND, position);
            }
            settled.map(|position| position.0)
        };
        assert_eq!(at(0, 0, true), None);
        assert_eq!(at(1, 3, true), None);
        assert_eq!(at(9, 5, true), None, "the later ones wait for the next watermark");
        assert_eq!(at(11, 5, false), Some(3));
        assert_eq!(at(12, 5, true), Some(3), "it was not saved");
        assert_eq!(at(13, 5, true), None);
        assert_eq!(at(22, 5, true), None);
        assert_eq!(at(23, 5, true), Some(5));
        assert_eq!(at(60, 5, true), None);
    }
}
