//! Clients of a Kubernetes API: many at once, each with a connection of its own, and how long each request took.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// The way to the cluster that a kubeconfig names.
///
/// # Panics
/// When the file is none, or of no use.
pub async fn of_kubeconfig(path: &Path) -> Config {
    let file = Kubeconfig::read_from(path).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    config.expect("a kubeconfig of use")
}

/// A client with a connection of its own, which repeats nothing.
///
/// # Panics
/// When the configuration is of no use.
pub fn client(config: &Config) -> Client {
    let mut config = config.clone();
    config.default_retry = false;
    Client::try_from(config).expect("a right configuration")
}

/// Sends a request and reads the whole answer; how long that took, and how many bytes came.
///
/// # Panics
/// When the server refuses.
pub async fn timed(client: &Client, request: Request<Body>) -> (Duration, usize) {
    let begun = Instant::now();
    let response = client.send(request).await.expect("an answer");
    let code = response.status();
    let body = response.into_body().collect().await.expect("a whole answer").to_bytes();
    assert!(code.is_success(), "{code}: {}", String::from_utf8_lossy(&body));
    (begun.elapsed(), body.len())
}

/// A request for a path.
///
/// # Panics
/// When the path is none.
pub fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).expect("a path")
}

/// A request that creates an object.
///
/// # Panics
/// When the path is none.
pub fn post(path: &str, object: String) -> Request<Body> {
    let request = Request::post(path).header("content-type", "application/json");
    request.body(Body::from(object.into_bytes())).expect("a path")
}

/// A request that deletes the object at a path.
///
/// # Panics
/// When the path is none.
pub fn delete(path: &str) -> Request<Body> {
    Request::delete(path).body(Body::empty()).expect("a path")
}

/// Sends requests 0 to `count`, as fast as so many clients get answers; how long all took, and each.
///
/// # Panics
/// When the server refuses one.
pub async fn all(
    config: &Config,
    clients: usize,
    count: usize,
    request: impl Fn(usize) -> Request<Body> + Send + Sync + 'static,
) -> (Duration, Vec<Duration>) {
    let request = Arc::new(request);
    let send = move |client: Client, number| {
        let request = request.clone();
        async move { timed(&client, request(number)).await.0 }
    };
    at_once(clients, count, || client(config), send).await
}

/// Does things 0 to `count`, as fast as so many clients, each with a connection of its own, get them done; how long
/// all took, and each.
///
/// # Panics
/// When one of them panics.
pub async fn at_once<C, F>(
    clients: usize,
    count: usize,
    connect: impl Fn() -> C,
    send: impl Fn(C, usize) -> F + Send + Sync + 'static,
) -> (Duration, Vec<Duration>)
where
    C: Clone + Send + Sync + 'static,
    F: Future<Output = Duration> + Send,
{
    let (next, send) = (Arc::new(AtomicUsize::new(0)), Arc::new(send));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let (client, next, send) = (connect(), next.clone(), send.clone());
            tokio::spawn(async move {
                let mut times = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return times;
                    }
                    times.push(send(client.clone(), number).await);
                }
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("no client panics"));
    }
    (begun.elapsed(), times)
}
