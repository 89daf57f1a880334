//! Objects that a [`StorageBackend`] keeps, and their changes for watches: its log is polled, since other servers may
//! write there too.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::hub::Hub;
use super::{Mutation, Revision, StorageBackend, StoreError, WriteError};

/// How often it is asked where nobody writes here.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// How long the first answer is waited for. Without one, requests are refused until it comes.
const FIRST_WITHIN: Duration = Duration::from_secs(5);
/// How long a writer waits until watches have what it wrote.
const PUBLISHED_WITHIN: Duration = Duration::from_secs(5);
/// Revisions read at once.
const CHUNK: u32 = 200;

/// How far watches are, by resource; `None` before the first answer.
type Published = Option<HashMap<String, u64>>;

/// A backend whose log is followed.
#[derive(Clone)]
pub(crate) struct FollowedBackend {
    pub(super) backend: Arc<dyn StorageBackend>,
    pub(super) hub: Arc<Hub>,
    published: watch::Receiver<Published>,
    nudge: Arc<Notify>,
}

impl FollowedBackend {
    /// Follows the log until stopped.
    pub(crate) async fn start(backend: Arc<dyn StorageBackend>, stop: CancellationToken) -> Self {
        let (to, published) = watch::channel(None);
        let nudge = Arc::new(Notify::new());
        let hub = Arc::new(Hub::new(0));
        let poll = Poll {
            backend: backend.clone(),
            hub: hub.clone(),
            to,
        };
        if timeout(FIRST_WITHIN, poll.poll()).await.is_err() {
            tracing::warn!("what keeps the objects does not answer yet");
        }
        tokio::spawn(stop.run_until_cancelled_owned(poll.run(nudge.clone())));
        Self {
            backend,
            hub,
            published,
            nudge,
        }
    }

    /// The last resource version of a resource that watches have; nothing where none is known yet.
    pub(super) fn committed(&self, resource: &str) -> Option<u64> {
        self.published.borrow().as_ref()?.get(resource).copied()
    }

    /// Makes one mutation. Watches have it when this returns, or soon.
    pub(super) async fn write(&self, mutation: Mutation) -> Result<Arc<Revision>, WriteError> {
        let revision = self.backend.write(mutation).await?;
        self.nudge.notify_one();
        let mut published = self.published.clone();
        let resource = &*revision.key.resource;
        let is_there = |published: &Published| {
            let known = published.as_ref().and_then(|known| known.get(resource));
            known.is_some_and(|known| *known >= revision.rv)
        };
        // What is written is written: a reader that wants exactly this version waits a little longer.
        let _late = timeout(PUBLISHED_WITHIN, published.wait_for(is_there)).await;
        Ok(revision)
    }
}

/// The end that asks.
struct Poll {
    backend: Arc<dyn StorageBackend>,
    hub: Arc<Hub>,
    to: watch::Sender<Published>,
}

impl Poll {
    async fn run(self, nudge: Arc<Notify>) {
        loop {
            tokio::select! {
                () = self.to.closed() => return,
                () = nudge.notified() => {}
                () = tokio::time::sleep(POLL_EVERY) => {}
            }
            if let Err(error) = self.poll().await {
                tracing::debug!(%error, "what keeps the objects does not answer");
            }
        }
    }

    async fn poll(&self) -> Result<(), StoreError> {
        let newest = self.backend.newest().await?;
        let known = self.to.borrow().clone();
        let Some(mut known) = known else {
            // Who watches from now on reads what there is from the log.
            self.to.send_replace(Some(newest));
            return Ok(());
        };
        for (resource, newest) in BTreeMap::from_iter(newest) {
            let at = known.entry(resource.clone()).or_insert(newest);
            let caught_up = self.catch_up(&resource, at, newest).await;
            self.to.send_replace(Some(known.clone()));
            caught_up?;
        }
        Ok(())
    }

    async fn catch_up(&self, resource: &str, at: &mut u64, newest: u64) -> Result<(), StoreError> {
        while *at < newest {
            match self.backend.log_after(resource, *at, CHUNK).await {
                Ok(page) => {
                    let Some(last) = page.objects.last() else { break };
                    self.hub.publish(&page.objects, last.rv);
                    *at = last.rv;
                }
                Err(StoreError::Compacted { .. }) => {
                    self.hub.close(resource);
                    *at = newest;
                }
                Err(error) => return Err(error),
            }
        }
        if *at > newest {
            // The database is an older one: its clients begin anew.
            self.hub.close(resource);
            *at = newest;
        }
        Ok(())
    }
}
