//! All watches of a server: how many there may be, what their events may take together, and who is ended where that is
//! not enough.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::texts::Texts;
use crate::unread::{Unread, Verdict, slowest};

/// So much is handed over at once: who takes as much is reading.
const PIECE_BYTES: usize = 64 * 1024;

/// What watches may take.
#[derive(Clone, Copy, Debug)]
pub struct WatchLimits {
    /// At once.
    pub watches: usize,
    /// Events that are made and not read, of all watches together.
    pub bytes: usize,
    /// Who reads nothing for so long is ended where others need the room.
    pub grace: Duration,
    /// Watches that read their state, or what they missed, at once.
    pub beginnings: usize,
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self {
            watches: 10_000,
            bytes: 64 * 1024 * 1024,
            grace: Duration::from_secs(2),
            beginnings: 8,
        }
    }
}

/// Who is told what the watches do.
pub trait Meter: Send + Sync {
    /// So many bytes are held.
    fn held(&self, bytes: usize);
    /// A watch was ended for the sake of others.
    fn ended(&self);
}

/// Nobody.
impl Meter for () {
    fn held(&self, _bytes: usize) {}
    fn ended(&self) {}
}

/// The watches of a server. Clones are the same.
#[derive(Clone)]
pub struct Watches(Arc<WatchesInner>);

struct WatchesInner {
    limits: WatchLimits,
    texts: Arc<Texts>,
    slots: Mutex<WatchSlots>,
    /// Who makes room at this moment.
    settling: tokio::sync::Mutex<()>,
    beginnings: Semaphore,
    left: Notify,
    meter: Box<dyn Meter>,
}

#[derive(Default)]
struct WatchSlots {
    last: u64,
    taken: BTreeMap<u64, Arc<WatchState>>,
}

/// What is known of one watch.
struct WatchState {
    ended: CancellationToken,
    unread: Mutex<Unread>,
}

impl WatchState {
    fn unread(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watches {
    /// None yet.
    pub fn new(limits: WatchLimits) -> Self {
        Self::metered(limits, ())
    }

    /// None yet; what they do is told to somebody.
    pub fn metered(limits: WatchLimits, meter: impl Meter + 'static) -> Self {
        Self(Arc::new(WatchesInner {
            limits,
            texts: Arc::default(),
            slots: Mutex::default(),
            settling: tokio::sync::Mutex::new(()),
            beginnings: Semaphore::new(limits.beginnings),
            left: Notify::new(),
            meter: Box::new(meter),
        }))
    }

    /// What they may take.
    pub fn limits(&self) -> WatchLimits {
        self.0.limits
    }

    /// One more watch, unless there are as many as may be.
    pub fn begin(&self) -> Option<WatchSlot> {
        let mut slots = self.0.slots();
        if slots.taken.len() >= self.0.limits.watches {
            return None;
        }
        slots.last += 1;
        let (number, state) = (
            slots.last,
            Arc::new(WatchState {
                ended: CancellationToken::new(),
                unread: Mutex::default(),
            }),
        );
        slots.taken.insert(number, state.clone());
        let watches = self.clone();
        Some(WatchSlot(Arc::new(WatchSlotInner { watches, number, state })))
    }

    /// Bytes that are held for watches.
    pub fn bytes(&self) -> usize {
        self.0.texts.bytes()
    }

    /// A text of an event, counted as long as anybody holds it.
    pub fn counted(&self, text: Bytes) -> Bytes {
        self.metered_text(self.0.texts.counted(text))
    }

    /// The same, and the very text that another watch holds, where it says the same.
    pub fn shared(&self, text: Bytes) -> Bytes {
        self.metered_text(self.0.texts.shared(text))
    }

    fn metered_text(&self, text: Bytes) -> Bytes {
        self.0.meter.held(self.bytes());
        text
    }

    /// Waits for the turn to read a state, or what was missed: much at once, and not urgent.
    pub async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes it.
        self.0.beginnings.acquire().await.ok()
    }

    /// Waits until there is room for what is held. Ends watches whose clients do not read, where they hold it.
    pub async fn settle(&self) {
        let inner = &*self.0;
        if self.bytes() <= inner.limits.bytes {
            return;
        }
        let _one_at_a_time = inner.settling.lock().await;
        while self.bytes() > inner.limits.bytes {
            let mut freed = std::pin::pin!(inner.texts.freed.notified());
            freed.as_mut().enable();
            let now = Instant::now();
            let unread = {
                let slots = inner.slots();
                let open = slots.taken.iter().filter(|(_, state)| !state.ended.is_cancelled());
                let unread = open.map(|(number, state)| (*number, *state.unread()));
                slowest(now, inner.limits.grace, unread)
            };
            match unread {
                Verdict::End(number) => {
                    let mut left = std::pin::pin!(inner.left.notified());
                    left.as_mut().enable();
                    inner.end(number);
                    // What it held alone is free once its connection has gone.
                    let _late = timeout(inner.limits.grace, left).await;
                }
                Verdict::Wait(until) => {
                    let _late = timeout_at(until, freed).await;
                }
                // Nobody could make room: what is held is about to be handed over.
                Verdict::Nobody => break,
            }
            inner.meter.held(self.bytes());
        }
    }
}

impl WatchesInner {
    fn slots(&self) -> MutexGuard<'_, WatchSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, number: u64) {
        if let Some(state) = self.slots().taken.get(&number) {
            state.ended.cancel();
            self.meter.ended();
        }
    }
}

/// The place of one watch, until nobody has it any more.
#[derive(Clone)]
pub struct WatchSlot(Arc<WatchSlotInner>);

struct WatchSlotInner {
    watches: Watches,
    number: u64,
    state: Arc<WatchState>,
}

impl Drop for WatchSlotInner {
    fn drop(&mut self) {
        self.watches.0.slots().taken.remove(&self.number);
        self.watches.0.meter.held(self.watches.bytes());
        self.watches.0.left.notify_waiters();
    }
}

/// Whose texts a body hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// Those of [`Watches`], which are counted there.
    Counted,
    /// Others, which count as they are handed over.
    Own,
}

impl WatchSlot {
    /// Cancelled when the watch ends for the sake of others: its answer is to be broken off, also where its client
    /// takes nothing of it.
    pub fn ended(&self) -> &CancellationToken {
        &self.0.state.ended
    }

    /// The server's watches.
    pub fn watches(&self) -> &Watches {
        &self.0.watches
    }

    /// An answer of which is known what its client has not taken.
    pub fn track<B: Body<Data = Bytes> + Unpin>(self, body: B, accounting: Accounting) -> WatchBody<B> {
        WatchBody {
            slot: self,
            body,
            accounting,
            rest: Bytes::new(),
        }
    }

    fn handed(&self, piece: Bytes) -> Bytes {
        self.0.state.unread().handed(piece.len(), Instant::now());
        let slot = self.0.clone();
        Bytes::from_owner(CountedPiece { piece, slot })
    }
}

/// A piece of an answer, until it is on its way.
struct CountedPiece {
    piece: Bytes,
    slot: Arc<WatchSlotInner>,
}

impl AsRef<[u8]> for CountedPiece {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

impl Drop for CountedPiece {
    fn drop(&mut self) {
        self.slot.state.unread().taken(self.piece.len(), Instant::now());
    }
}

/// The body of a watch.
pub struct WatchBody<B> {
    slot: WatchSlot,
    body: B,
    accounting: Accounting,
    rest: Bytes,
}

impl<B: Body<Data = Bytes> + Unpin> Body for WatchBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        while this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(context)).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) if this.accounting == Accounting::Own => {
                    this.rest = this.slot.watches().counted(data);
                }
                Some(Ok(Ok(data))) => this.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = this.rest.len().min(PIECE_BYTES);
        let piece = this.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(this.slot.handed(piece)))))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};

    use super::*;

    #[test]
    fn what_several_watches_tell_is_held_once() {
        let watches = watches(10_000);
        let text = || Bytes::from(vec![b'x'; 1_000]);
        let sent = [watches.shared(text()), watches.shared(text())];
        assert_eq!(watches.bytes(), 1_000);
        let own = watches.counted(text());
        assert_eq!(watches.bytes(), 2_000);
        drop((sent, own));
        assert_eq!(watches.bytes(), 0);
    }

    fn watches(bytes: usize) -> Watches {
        Watches::new(WatchLimits {
            watches: 3,
            bytes,
            grace: Duration::from_secs(5),
            beginnings: 1,
        })
    }

    /// A watch whose client has been handed a text of its own.
    async fn handed(watches: &Watches, bytes: usize) -> (WatchSlot, Bytes) {
        let slot = watches.begin().expect("a slot");
        let text = Full::new(Bytes::from(vec![b'x'; bytes]));
        let frame = slot.clone().track(text, Accounting::Own).frame().await;
        let data = frame.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
        (slot, data.expect("a text"))
    }

    #[tokio::test]
    async fn there_are_no_more_watches_than_may_be() {
        let watches = watches(100);
        let slots: Vec<_> = (0..3).map(|_| watches.begin().expect("a slot")).collect();
        assert!(watches.begin().is_none());
        drop(slots);
        assert!(watches.begin().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_watch_that_does_not_read_ends_where_room_is_needed_and_no_other() {
        let watches = watches(1500);
        let (slow, text) = handed(&watches, 1000).await;
        // As the server does.
        let ended = slow.ended().clone();
        tokio::spawn(async move {
            ended.cancelled().await;
            drop((slow, text));
        });
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(watches.bytes(), 1000, "there is room for it");
        let (quick, text) = handed(&watches, 1000).await;
        watches.settle().await;
        assert_eq!(watches.bytes(), 1000);
        assert!(!quick.ended().is_cancelled());
        drop((quick, text));
        assert_eq!(watches.bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_makes_room_without_an_end() {
        let watches = watches(1500);
        let (first, text) = handed(&watches, 1000).await;
        let (second, _text) = handed(&watches, 1000).await;
        tokio::spawn(async move {
            tokio::time::sleep_until(Instant::now() + Duration::from_secs(4)).await;
            drop(text);
        });
        watches.settle().await;
        assert!(!first.ended().is_cancelled() && !second.ended().is_cancelled());
    }

    #[tokio::test]
    async fn more_than_there_is_room_for_passes_where_nobody_could_make_room() {
        let watches = watches(10);
        let _text = watches.counted(Bytes::from(vec![b'x'; 1000]));
        watches.settle().await;
    }
}
