//! All topics at work: the stream of each kind with events is fed, one beside the other, while it is this process's
//! turn. What fails is tried again for as long as the turn lasts.

use std::sync::Arc;
use std::time::Duration;

use kindex_model::kind::{Kind, Registry};
use kindex_store::Outbox;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::feed::Feeder;
use crate::progress::{Metrics, Progress};

/// How often the outbox is asked for changes while there are none.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// The pause after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How often the lag is shown.
const SHOW_EVERY: Duration = Duration::from_secs(1);

/// What feeds the streams of all kinds with events.
pub struct Feeders {
    topics: Vec<Topic>,
}

struct Topic {
    kind: &'static Kind,
    feeder: Arc<Feeder>,
    progress: Progress,
}

impl Feeders {
    /// Feeds nothing yet. Streams that are not there get so many partitions.
    pub fn new(
        registry: &Registry,
        connection: &Connection,
        outbox: &Arc<dyn Outbox>,
        partitions: u32,
        metrics: &Metrics,
    ) -> Self {
        let kinds = registry.kinds.iter().filter(|kind| kind.events);
        let topics = kinds.map(|kind| {
            let progress = metrics.of(kind.name);
            let feeder = Feeder::new(connection.clone(), outbox.clone(), kind, partitions, progress.clone());
            Topic {
                kind,
                feeder: Arc::new(feeder),
                progress,
            }
        });
        Self {
            topics: topics.collect(),
        }
    }

    /// Why streams are behind; nothing where they are not, or where another process feeds them.
    pub fn not_ready(&self) -> Vec<String> {
        let troubles = self.topics.iter().filter_map(|topic| {
            let trouble = topic.progress.trouble()?;
            Some(format!("{}: no events reach NATS: {trouble}", topic.kind.name))
        });
        troubles.collect()
    }

    /// Feeds until stopped. It can be run again.
    pub async fn run(&self, stop: &CancellationToken) {
        let mut feeding = JoinSet::new();
        for topic in &self.topics {
            topic.progress.begin(Instant::now());
            feeding.spawn(feed(topic.feeder.clone(), topic.progress.clone()));
        }
        let shown = async {
            let mut shows = interval(SHOW_EVERY);
            loop {
                let now = shows.tick().await;
                self.topics.iter().for_each(|topic| topic.progress.show(now));
            }
        };
        stop.run_until_cancelled::<_>(shown).await;
        // An event that was sent and is not answered yet counts as not sent: whoever feeds next sends it again.
        feeding.shutdown().await;
        self.topics.iter().for_each(|topic| topic.progress.end());
    }
}

async fn feed(feeder: Arc<Feeder>, progress: Progress) {
    loop {
        let Err(error) = feeder.run(ASK_EVERY).await;
        tracing::warn!(topic = feeder.topic(), %error, "Events do not reach NATS; retrying");
        progress.failed(error.to_string());
        sleep(RETRY_AFTER).await;
    }
}
