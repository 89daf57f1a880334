//! The networks of another service beside those of these tests: a server that answers about them, and says what it was
//! asked to change.

use std::future::ready;
use std::sync::{Arc, Mutex};

use axum::http::{Method, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use kindex_kube_client::peer::Address;
use serde_json::json;
use tokio::net::TcpListener;

/// The group of the networks.
pub(super) const GROUP: &str = "region.example.com";
/// Where its API has the networks of the namespace of these tests.
pub(super) const NETWORKS: &str = "/api/v1/networks.region.example.com/shop";

/// A service that gives these answers about its networks.
pub(super) struct Region {
    pub(super) address: Address,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Region {
    pub(super) async fn start(answer: impl Fn(&Uri) -> Response + Clone + Send + Sync + 'static) -> Self {
        let version = json!({"groupVersion": format!("{GROUP}/v1"), "version": "v1"});
        let groups = json!({"kind": "APIGroupList", "apiVersion": "v1",
            "groups": [{"name": GROUP, "versions": [version], "preferredVersion": version}]});
        let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/v1"),
            "resources": [{"name": "networks", "singularName": "network", "namespaced": true, "kind": "Network",
                "verbs": ["get"]}]});
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = asked.clone();
        let router: Router = Router::new().fallback(move |method: Method, at: Uri| {
            if method != Method::GET {
                heard.lock().expect("nobody panics").push(format!("{method} {at}"));
            }
            ready(match at.path() {
                "/apis" => Json(groups.clone()).into_response(),
                "/apis/region.example.com/v1" => Json(resources.clone()).into_response(),
                _ => answer(&at),
            })
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = Address {
            name: "region".to_owned(),
            url: format!("http://{}", listener.local_addr().expect("an address")),
            ca_file: None,
            token_file: None,
        };
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, asked }
    }

    /// What it was asked to change since the last call, each with the method.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().expect("nobody panics"))
    }
}
