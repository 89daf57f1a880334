//! Work while this replica is the leader: one shard, whose lease several replicas pass on.

use std::collections::BTreeSet;
use std::sync::Arc;

use kindex_runtime::replicas::Sharded;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What works until it is stopped, and can be run again.
pub(super) trait Worker: Send + Sync + 'static {
    /// Works until stopped.
    fn run(&self, stop: &CancellationToken) -> impl Future<Output = ()> + Send;
}

/// Whether this replica is the leader, and whether it is at work.
pub(super) struct Leadership {
    leads: watch::Sender<bool>,
    working: watch::Receiver<bool>,
}

impl Leadership {
    /// Of a replica that is not the leader yet, and the work, which ends once it is stopped.
    pub(super) fn of<W: Worker>(worker: Arc<W>, stop: CancellationToken) -> (Self, impl Future<Output = ()> + Send) {
        let (leads, led) = watch::channel(false);
        let (at_work, working) = watch::channel(false);
        let work = async move {
            stop.run_until_cancelled(work(&*worker, led, &at_work)).await;
        };
        (Self { leads, working }, work)
    }
}

async fn work<W: Worker>(worker: &W, mut led: watch::Receiver<bool>, at_work: &watch::Sender<bool>) {
    while led.wait_for(|leads| *leads).await.is_ok() {
        let stop = CancellationToken::new();
        at_work.send_replace(true);
        let over = async {
            // Without the sender, this replica leads no more.
            let _ = led.wait_for(|leads| !*leads).await;
            stop.cancel();
        };
        tokio::join!(worker.run(&stop), over);
        at_work.send_replace(false);
    }
}

impl Sharded for Leadership {
    fn shards(&self) -> usize {
        1
    }

    fn assign(&self, shards: &BTreeSet<usize>) {
        let is_leader = shards.contains(&0);
        self.leads
            .send_if_modified(|leads| std::mem::replace(leads, is_leader) != is_leader);
    }

    async fn drain(&self, _shard: usize) {
        let mut working = self.working.clone();
        // Without the work there is nothing to wait for.
        let _ = working.wait_for(|working| !*working).await;
    }
}
