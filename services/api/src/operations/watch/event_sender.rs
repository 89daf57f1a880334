//! The sending end of a watch: passes events on at the client's pace, so that memory holds at most two.

use std::io;
use std::time::Duration;

use futures::StreamExt;
use kindex_kube_api::watch::EventType;
use kindex_serve::watches::Watches;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::{Event, Events};
use crate::metrics::{GaugeIncrement, Metrics};
use crate::operations::Refusal;

/// A watcher that takes no event for so long, while there is one, is left alone. It loses nothing: who asks again from
/// the last version that it saw misses no event.
pub(super) const STALLED: Duration = Duration::from_secs(30);

/// Sends the events of one watch to its client.
pub(super) struct EventSender {
    to: mpsc::Sender<io::Result<Event>>,
    stalled: Duration,
    watches: Watches,
}

/// Why a watch ends.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// Nobody takes its events.
    Left,
    /// Its client has to ask again.
    Broken(io::Error),
    /// Its client is told why there is no more.
    Refused(Box<Refusal>),
}

impl From<Refusal> for StreamEnd {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<io::Error> for StreamEnd {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl EventSender {
    /// Once there is room for what watches hold.
    pub(super) async fn send(&self, event: Event) -> Result<(), StreamEnd> {
        self.watches.settle().await;
        let sent = self.to.send_timeout(Ok(event), self.stalled).await;
        sent.map_err(|_| StreamEnd::Left)
    }

    /// The same of a text that was made here.
    pub(super) async fn send_own(&self, event: Event) -> Result<(), StreamEnd> {
        let object = self.watches.shared(event.object);
        self.send(Event { object, ..event }).await
    }

    /// Until nobody is there.
    pub(super) async fn closed(&self) {
        self.to.closed().await;
    }
}

/// The events that `feed` sends, until it ends.
pub(super) fn fed<F>(
    metrics: &Metrics,
    watches: &Watches,
    stalled: Duration,
    feed: impl FnOnce(EventSender) -> F,
) -> Events
where
    F: Future<Output = Result<(), StreamEnd>> + Send + 'static,
{
    let (to, from) = mpsc::channel(1);
    let last = to.clone();
    let feeding = feed(EventSender {
        to,
        stalled,
        watches: watches.clone(),
    });
    let one = GaugeIncrement::of(&metrics.watches);
    tokio::spawn(async move {
        let _until_the_end = one;
        match feeding.await {
            Ok(()) => {}
            Err(StreamEnd::Left) => tracing::debug!("A watcher takes no events; its watch has ended"),
            Err(StreamEnd::Broken(error)) => {
                tracing::debug!(%error, "A watch breaks off");
                // Whoever does not take it is gone.
                let _gone = last.send_timeout(Err(error), stalled).await;
            }
            Err(StreamEnd::Refused(refusal)) => {
                let event = Event {
                    r#type: EventType::Error,
                    object: refusal.to_json().into(),
                };
                let _gone = last.send_timeout(Ok(event), stalled).await;
            }
        }
    });
    ReceiverStream::new(from).boxed()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bytes::Bytes;
    use kindex_serve::watches::WatchLimits;

    use super::*;

    fn event() -> Event {
        Event {
            r#type: EventType::Added,
            object: Bytes::from_static(b"{}"),
        }
    }

    async fn ends(metrics: &Metrics) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while metrics.watches.get() > 0.0 {
            assert!(Instant::now() < deadline, "the watch goes on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_watch_ends_when_nobody_takes_its_events_and_when_nobody_is_there() {
        let (metrics, watches) = (Metrics::default(), Watches::new(WatchLimits::default()));
        let wait = Duration::from_millis(50);
        let mut stalled = fed(&metrics, &watches, wait, |sender| async move {
            loop {
                sender.send(event()).await?;
            }
        });
        assert_eq!(metrics.watches.get(), 1.0);
        ends(&metrics).await;
        let last = [stalled.next().await.is_some(), stalled.next().await.is_some()];
        assert_eq!(last, [true, false], "what was under way, and a clean end");

        let mut quiet = fed(&metrics, &watches, wait, |sender| async move {
            sender.closed().await;
            Ok(())
        });
        assert!(tokio::time::timeout(2 * wait, quiet.next()).await.is_err());
        assert_eq!(
            metrics.watches.get(),
            1.0,
            "it is not the watcher's fault that nothing happens"
        );
        drop(quiet);
        ends(&metrics).await;
    }

    #[tokio::test]
    async fn an_error_is_the_last_item_of_a_watch() {
        let (metrics, watches) = (Metrics::default(), Watches::new(WatchLimits::default()));
        let events = fed(&metrics, &watches, STALLED, |sender| async move {
            sender.send(event()).await?;
            Err(io::Error::other("broken").into())
        });
        let sent: Vec<bool> = events.map(|event| event.is_ok()).collect().await;
        assert_eq!(sent, [true, false]);
    }
}
