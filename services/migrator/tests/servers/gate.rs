//! Holds a client back, so that a test can act before a migration ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;

/// A client that gets `pages` pages of a list at once, and further ones when it may go on, however often it asks.
pub(crate) fn held_after(pages: usize, client: &Client, goes_on: watch::Receiver<bool>) -> Client {
    let (client, asked) = (client.clone(), Arc::<AtomicUsize>::default());
    let answer = move |request: Request<Body>| {
        let (client, asked, mut goes_on) = (client.clone(), asked.clone(), goes_on.clone());
        async move {
            let is_later = request.uri().query().is_some_and(|query| query.contains("continue="));
            if is_later && asked.fetch_add(1, Ordering::Relaxed) + 1 >= pages {
                goes_on
                    .wait_for(|goes_on| *goes_on)
                    .await
                    .expect("it goes on some time");
            }
            client.send(request).await
        }
    };
    Client::new(tower::service_fn(answer), "default")
}
