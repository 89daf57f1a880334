//! Work while it is this replica's turn: one shard, whose lease several replicas pass on.

use std::collections::BTreeSet;
use std::sync::Arc;

use kindex_runtime::replicas::Divided;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What works until it is stopped, and can be run again.
pub(super) trait Worker: Send + Sync + 'static {
    /// Works until stopped.
    fn run(&self, stop: &CancellationToken) -> impl Future<Output = ()> + Send;
}

/// Whether it is this replica's turn, and whether it is at work.
pub(super) struct Turn {
    ours: watch::Sender<bool>,
    working: watch::Receiver<bool>,
}

impl Turn {
    /// A turn that is not ours yet, and the work, which ends once it is stopped.
    pub(super) fn of<W: Worker>(worker: Arc<W>, stop: CancellationToken) -> (Self, impl Future<Output = ()> + Send) {
        let (ours, turns) = watch::channel(false);
        let (at_work, working) = watch::channel(false);
        let work = async move {
            stop.run_until_cancelled(work(&*worker, turns, &at_work)).await;
        };
        (Self { ours, working }, work)
    }
}

async fn work<W: Worker>(worker: &W, mut turns: watch::Receiver<bool>, at_work: &watch::Sender<bool>) {
    while turns.wait_for(|ours| *ours).await.is_ok() {
        let stop = CancellationToken::new();
        at_work.send_replace(true);
        let over = async {
            // A sender that is gone gives no more turns.
            let _ = turns.wait_for(|ours| !*ours).await;
            stop.cancel();
        };
        tokio::join!(worker.run(&stop), over);
        at_work.send_replace(false);
    }
}

impl Divided for Turn {
    fn shards(&self) -> usize {
        1
    }

    fn assign(&self, shards: &BTreeSet<usize>) {
        let is_ours = shards.contains(&0);
        self.ours
            .send_if_modified(|ours| std::mem::replace(ours, is_ours) != is_ours);
    }

    async fn drain(&self, _shard: usize) {
        let mut working = self.working.clone();
        // Without the work there is nothing to wait for.
        let _ = working.wait_for(|working| !*working).await;
    }
}
