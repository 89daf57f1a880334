//! Waits until the process is asked to end.

use tokio::signal::unix::{SignalKind, signal};

/// Resolves at Ctrl-C or SIGTERM.
pub(crate) async fn wait() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        // Without a handler the signal ends the process by itself.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
