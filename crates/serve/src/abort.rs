//! One connection that may have to be broken off for the sake of others, whatever its client does.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Of an answer: when this is cancelled, the answer is broken off. An extension of the response.
#[derive(Clone, Debug)]
pub struct AbortToken(pub CancellationToken);

/// What breaks off a connection of one answer at a time.
#[derive(Debug)]
pub struct Aborter(watch::Sender<CancellationToken>);

impl Default for Aborter {
    fn default() -> Self {
        Self(watch::Sender::new(CancellationToken::new()))
    }
}

impl Aborter {
    /// An answer begins; the one before has ended.
    pub fn follow(&self, abort: Option<&AbortToken>) {
        let token = abort.map(|abort| abort.0.clone());
        self.0.send_replace(token.unwrap_or_default());
    }

    /// Until the answer under way is to be broken off.
    pub async fn needed(&self) {
        let mut current = self.0.subscribe();
        loop {
            let token = current.borrow_and_update().clone();
            tokio::select! {
                () = token.cancelled() => return,
                // The sender is ours.
                _ = current.changed() => {}
            }
        }
    }
}
