//! What a cluster sender of its front proxy: the ConfigMap that kube-apiserver keeps for servers behind it.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/>

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_serve::listen::FrontProxy;
use kube::{Api, Client};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
const AUTHORITY: &str = "requestheader-client-ca-file";
const NAMES: &str = "requestheader-allowed-names";

/// How often the cluster is asked whether it is another one by now.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(30);

/// What the cluster sender, as it is found again and again.
pub(crate) struct Source {
    maps: Api<ConfigMap>,
    known: BTreeMap<String, String>,
}

/// Whom to believe, and where it stands.
pub(crate) async fn read(client: &Client) -> CommandResult<(FrontProxy, Source)> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let known = data(&maps).await?;
    Ok((parse(&known)?, Source { maps, known }))
}

async fn data(maps: &Api<ConfigMap>) -> CommandResult<BTreeMap<String, String>> {
    let found = maps.get(NAME).await.map_err(|error| {
        CommandError::failure(format_args!("ConfigMap {NAMESPACE}/{NAME}: {error}")).hint(
            "the server's account needs the Role extension-apiserver-authentication-reader of namespace kube-system",
        )
    })?;
    let mut data = found.data.unwrap_or_default();
    data.retain(|key, _| [AUTHORITY, NAMES].contains(&key.as_str()));
    Ok(data)
}

impl Source {
    /// Hands on each front proxy that follows. While the cluster does not answer, or names none that can be used, the
    /// former stays.
    pub(crate) async fn follow<E: Error>(mut self, every: Duration, take: impl Fn(FrontProxy) -> Result<(), E>) {
        loop {
            tokio::time::sleep(every).await;
            let taken = self.look(&take).await;
            if let Err(error) = taken {
                tracing::warn!(%error, "The front proxy stays the one that is known");
            }
        }
    }

    async fn look<E: Error>(&mut self, take: impl Fn(FrontProxy) -> Result<(), E>) -> CommandResult {
        let found = data(&self.maps).await?;
        if found == self.known {
            return Ok(());
        }
        take(parse(&found)?).map_err(|error| CommandError::failure(chain(&error)))?;
        self.known = found;
        tracing::info!("The front proxy is another one from now on");
        Ok(())
    }
}

fn parse(data: &BTreeMap<String, String>) -> CommandResult<FrontProxy> {
    let wrong = |key: &str, why: &str| {
        CommandError::failure(format_args!("ConfigMap {NAMESPACE}/{NAME}: {key}: {why}"))
            .hint("start kube-apiserver with --requestheader-client-ca-file, or Kindex without --aggregated")
    };
    let authority = data.get(AUTHORITY).ok_or_else(|| wrong(AUTHORITY, "is not there"))?;
    let names = match data.get(NAMES) {
        Some(text) => serde_json::from_str(text).map_err(|error| wrong(NAMES, &error.to_string()))?,
        None => Vec::new(),
    };
    FrontProxy::new(authority, names).map_err(|error| wrong(AUTHORITY, &chain(&error)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use axum::routing::get;
    use axum::{Json, Router};
    use serde_json::{Value, json};
    use tokio::sync::watch;

    use super::*;

    #[test]
    fn what_a_cluster_lacks_for_a_front_proxy_is_reported() {
        let reported = |data: &[(&str, &str)]| {
            let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            parse(&data.collect())
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert!(reported(&[]).contains("requestheader-client-ca-file: is not there"));
        assert!(reported(&[(AUTHORITY, "x"), (NAMES, "x")]).contains("requestheader-allowed-names: "));
        assert!(reported(&[(AUTHORITY, "x"), (NAMES, "[]")]).contains("requestheader-client-ca-file: "));
    }

    /// A cluster that sender this of its front proxy, for as long as the listener is there.
    async fn cluster(data: watch::Receiver<Value>) -> Client {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}");
        let answer = async move || Json(json!({"metadata": {"name": NAME}, "data": *data.borrow()}));
        let router = Router::new().route(&path, get(answer));
        tokio::spawn(axum::serve(listener, router).into_future());
        let uri = format!("http://{address}").parse().expect("an address");
        Client::try_from(kube::Config::new(uri)).expect("a client")
    }

    #[tokio::test]
    async fn a_front_proxy_that_is_another_one_is_handed_on_once_and_one_that_is_none_never() {
        let first = include_str!("../../tests/tests/api/tls/first.crt");
        let second = include_str!("../../tests/tests/api/tls/second.crt");
        let (sender, receiver) = watch::channel(json!({AUTHORITY: first}));
        let (_, source) = read(&cluster(receiver).await).await.expect("a front proxy");
        let taken = Arc::new(AtomicUsize::new(0));
        let count = taken.clone();
        let following = tokio::spawn(source.follow(Duration::from_millis(5), move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::fmt::Error>(())
        }));
        let deadline = Instant::now() + Duration::from_secs(30);
        let rounds = async |rounds: u32| {
            // Longer than so many looks take.
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(20) * rounds).await;
        };
        rounds(5).await;
        assert_eq!(taken.load(Ordering::Relaxed), 0, "it is the same one");
        for none in [
            json!({}),
            json!({AUTHORITY: "nonsense"}),
            json!({AUTHORITY: first, "other": "key"}),
        ] {
            sender.send_replace(none);
            rounds(2).await;
        }
        assert_eq!(taken.load(Ordering::Relaxed), 0, "there is no other one");
        sender.send_replace(json!({AUTHORITY: second}));
        while taken.load(Ordering::Relaxed) == 0 {
            rounds(1).await;
        }
        rounds(5).await;
        assert_eq!(taken.load(Ordering::Relaxed), 1);
        following.abort();
    }
}
