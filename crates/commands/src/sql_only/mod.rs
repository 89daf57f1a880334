//! The API of the kinds that no cluster has: the embedded cluster's answers, over the rows of SQL. The API server asks
//! it in place of a cluster.

mod as_of;

mod rows;

mod together;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::Request;
use http::header::{HeaderValue, USER_AGENT};
use kindex_api::operations::Operations;
use kindex_cluster::{Convert, FixedApi, FixedOptions};
use kindex_model::kind::{Kind, Registry};
use kindex_store::MetadataStorage;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tower::service_fn;

use rows::Rows;

use crate::error::{CommandError, CommandResult, chain};

/// Nobody finds it by an address.
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A client of the API of the kinds that no cluster has; nothing where the registry has none.
///
/// # Errors
/// A definition that no cluster would take.
pub async fn client(registry: &Registry, store: Arc<dyn MetadataStorage>) -> CommandResult<Option<Client>> {
    let kinds: Vec<&'static Kind> = registry.sql_only_kinds().collect();
    if kinds.is_empty() {
        return Ok(None);
    }
    let definitions: Result<Vec<Value>, _> = kinds.iter().map(|kind| serde_saphyr::from_str(kind.manifest)).collect();
    let definitions = definitions.map_err(|error| CommandError::failure(chain(&error)))?;
    let options = FixedOptions {
        converter: Some(Arc::new(Versions(*registry))),
        ..FixedOptions::default()
    };
    let api = FixedApi::open(definitions, Arc::new(Rows::new(kinds, store)), options).await;
    let api = api.map_err(|error| CommandError::failure(chain(&error)))?;
    Ok(Some(Client::new(api.in_process(NOWHERE), "default")))
}

/// A client of all kinds: of those that no cluster has, and of everything else in this cluster.
///
/// # Errors
/// As [`client`].
pub async fn with_cluster(
    cluster: Client,
    registry: &Registry,
    store: Arc<dyn MetadataStorage>,
) -> CommandResult<Client> {
    Ok(over(cluster, client(registry, store).await?, registry))
}

/// The same, where [`client`] was called already.
pub fn over(cluster: Client, own: Option<Client>, registry: &Registry) -> Client {
    match own {
        Some(own) => together::together(cluster, own, *registry),
        None => cluster,
    }
}

/// The same API for a part of Kindex that calls itself so, where its requests do not say it: all who do not say who
/// they are share one place.
pub fn named(api: Client, agent: &'static str) -> Client {
    let namespace = api.default_namespace().to_owned();
    let service = service_fn(move |mut request: Request<Body>| {
        let said = request.headers_mut().entry(USER_AGENT);
        said.or_insert_with(|| HeaderValue::from_static(agent));
        let api = api.clone();
        async move { api.send(request).await }
    });
    Client::new(service, namespace)
}

/// The same verbs, over these kinds too.
///
/// # Errors
/// As [`client`].
pub async fn beside(
    operations: Operations,
    registry: &Registry,
    store: &Arc<dyn MetadataStorage>,
) -> CommandResult<Operations> {
    Ok(match client(registry, store.clone()).await? {
        Some(api) => operations.with_sql_only(api),
        None => operations,
    })
}

/// What a cluster in this process asks where a kind's versions have shapes of their own: the tables of the registry,
/// without a webhook.
pub struct Versions(pub Registry);

impl Versions {
    fn find(&self, group: &str, kind: &str) -> Option<&'static Kind> {
        let mut kinds = self.0.kinds.iter().copied();
        kinds.find(|known| known.group == group && known.name == kind)
    }
}

impl Convert for Versions {
    fn knows(&self, group: &str, kind: &str) -> bool {
        self.find(group, kind).is_some_and(|kind| !kind.versions.is_empty())
    }

    fn convert(&self, group: &str, kind: &str, text: &str, version: &str) -> Result<String, String> {
        let kind = self
            .find(group, kind)
            .ok_or_else(|| format!("{kind} is not a kind of Kindex"))?;
        kindex_convert::convert(&self.0.platform, kind, text, version).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;
    use std::sync::Mutex;

    use http::Response;

    use super::*;

    /// As if the deletion graph shared its place with callers that do not say who they are.
    #[tokio::test]
    async fn a_part_says_who_it_is() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let seen = said.clone();
        let answer = move |request: Request<Body>| {
            let agent = request.headers().get(USER_AGENT).cloned();
            seen.lock().expect("no panic").push(agent);
            ready(Ok::<_, Infallible>(Response::new(Body::empty())))
        };
        let api = named(Client::new(service_fn(answer), "default"), "a-part/1");
        let nameless = Request::get("/apis/g.example/v1/teams");
        let caller = Request::get("/apis/g.example/v1/teams").header(USER_AGENT, "kubectl/1");
        for request in [nameless, caller] {
            let request = request.body(Body::empty()).expect("a request");
            api.send(request).await.expect("an answer");
        }
        let expected = ["a-part/1", "kubectl/1"].map(|agent| Some(HeaderValue::from_static(agent)));
        assert_eq!(*said.lock().expect("no panic"), expected);
    }
}
