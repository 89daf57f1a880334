//! Waits until the process is asked to end.

use std::{future, io};

use futures::future::select_all;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Resolves at Ctrl-C or SIGTERM. Each that comes after the call is noticed, whenever that is waited for: whoever says
/// that the process is ready calls this before.
pub fn wait() -> impl Future<Output = ()> {
    let signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    async move {
        let arrived = signals.into_iter().map(|signal| Box::pin(arrived(signal)));
        select_all(arrived).await;
    }
}

async fn arrived(signal: io::Result<Signal>) {
    match signal {
        Ok(mut signal) => _ = signal.recv().await,
        // Without a handler the signal ends the process by itself.
        Err(_) => future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn a_signal_that_comes_before_anybody_waits_for_it_is_noticed() {
        let asked = wait();
        let process = std::process::id().to_string();
        let sent = Command::new("kill").args(["-TERM", &process]).status();
        assert!(sent.expect("kill runs").success());
        asked.await;
    }
}
