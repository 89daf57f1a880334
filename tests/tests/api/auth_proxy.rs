//! A proxy before the embedded cluster, which knows no users: it reviews tokens and rights by a short list, and lets
//! requests through as far as their tokens allow. A request without a token is the server's own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A service account.
pub(super) const ROBOT: &str = "system:serviceaccount:default:robot";

/// What the proxy has seen.
#[derive(Clone, Default)]
pub(super) struct AuthProxy {
    pub(super) reviews: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    /// User and method of what came with a token and was let through.
    pub(super) passed: Arc<Mutex<Vec<String>>>,
    /// What SubjectAccessReviews asked for.
    pub(super) reviewed: Arc<Mutex<Vec<Value>>>,
    overtaken: Arc<Mutex<Option<Overtaken>>>,
}

/// A request before which something else happens.
struct Overtaken {
    method: &'static str,
    path: String,
    by: BoxFuture<'static, ()>,
}

#[derive(Clone)]
struct ProxyState {
    proxy: AuthProxy,
    cluster: Client,
}

/// What somebody wants to do.
struct Attributes {
    verb: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

impl Attributes {
    /// What a request wants, by its method and path.
    fn of(parts: &Parts) -> Self {
        let path: Vec<&str> = parts.uri.path().split('/').skip(1).collect();
        let (namespace, rest) = match path[..] {
            ["apis", _, _, "namespaces", namespace, ref rest @ ..] if !rest.is_empty() => (namespace, rest),
            ["api", _, "namespaces", namespace, ref rest @ ..] if !rest.is_empty() => (namespace, rest),
            ["apis", _, _, ref rest @ ..] | ["api", _, ref rest @ ..] => ("", rest),
            _ => ("", &path[..]),
        };
        let part = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
        let watches = parts.uri.query().is_some_and(|query| query.contains("watch="));
        let verb = match (parts.method.as_str(), rest.len()) {
            ("GET", 1) if watches => "watch",
            ("GET", 1) => "list",
            ("GET", _) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", 1) => "deletecollection",
            ("DELETE", _) => "delete",
            _ => "other",
        };
        Self {
            verb: verb.to_owned(),
            resource: part(0),
            subresource: part(2),
            namespace: namespace.to_owned(),
            name: part(1),
        }
    }

    /// What a SubjectAccessReview asks for.
    fn reviewed(attributes: &Value) -> Self {
        let text = |field: &str| attributes[field].as_str().unwrap_or_default().to_owned();
        Self {
            verb: text("verb"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        }
    }
}

/// Jane reads, creates and deletes in `default`; the root does everything; a deputy acts as Jane, a warden as the robot
/// of `default`, and the robot reads there; `only-VERB` and `only-VERB/SUBRESOURCE` have this one right to models,
/// everywhere, `only-VERB+VERB` two, and `only-VERB@RESOURCE` one to another resource.
fn allows(user: &str, attributes: &Attributes) -> bool {
    let verb = attributes.verb.as_str();
    match user {
        "root" => true,
        "jane" => attributes.namespace == "default" && ["get", "list", "watch", "create", "delete"].contains(&verb),
        "deputy" => (verb, attributes.resource.as_str(), attributes.name.as_str()) == ("impersonate", "users", "jane"),
        "warden" => {
            let place = (attributes.namespace.as_str(), attributes.name.as_str());
            (verb, attributes.resource.as_str(), place) == ("impersonate", "serviceaccounts", ("default", "robot"))
        }
        ROBOT => attributes.namespace == "default" && ["get", "list"].contains(&verb),
        _ => {
            let own = match attributes.subresource.as_str() {
                "" => verb.to_owned(),
                subresource => format!("{verb}/{subresource}"),
            };
            let rights = user.strip_prefix("only-").unwrap_or_default();
            rights.split('+').any(|right| {
                let (verb, resource) = right.split_once('@').unwrap_or((right, "models"));
                verb == own && attributes.resource == resource
            })
        }
    }
}

impl AuthProxy {
    /// How many have come by, reviews included.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Lets this happen in the cluster before the next request of this method and path is let through.
    pub(super) fn overtake(&self, method: &'static str, path: &str, by: impl Future<Output = ()> + Send + 'static) {
        let (path, by) = (path.to_owned(), by.boxed());
        *self.overtaken.lock().unwrap() = Some(Overtaken { method, path, by });
    }

    /// Whether what was to happen has happened.
    pub(super) fn has_overtaken(&self) -> bool {
        self.overtaken.lock().unwrap().is_none()
    }

    /// Serves before a cluster; the configuration with which it is asked.
    pub(super) async fn serve_before(&self, cluster: Config, stop: &CancellationToken) -> Config {
        self.serve_before_client(Client::try_from(cluster).unwrap(), stop).await
    }

    /// The same before whatever this is a client of.
    pub(super) async fn serve_before_client(&self, cluster: Client, stop: &CancellationToken) -> Config {
        let state = ProxyState {
            proxy: self.clone(),
            cluster,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().fallback(answer).with_state(state);
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move { axum::serve(listener, router).with_graceful_shutdown(stopped).await });
        Config::new(format!("http://{address}").parse().unwrap())
    }
}

async fn answer(State(state): State<ProxyState>, request: Request) -> Response {
    state.proxy.requests.fetch_add(1, Ordering::SeqCst);
    let (mut parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    if parts.uri.path().ends_with("reviews") {
        state.proxy.reviews.fetch_add(1, Ordering::SeqCst);
        let sent: Value = serde_json::from_slice(&body).unwrap();
        if sent["spec"]["resourceAttributes"].is_object() {
            state.proxy.reviewed.lock().unwrap().push(sent["spec"].clone());
        }
        return Json(json!({"status": review(&sent)})).into_response();
    }
    if let Some(token) = parts.headers.remove("authorization") {
        let user_of_token = token
            .to_str()
            .unwrap()
            .trim_start_matches("Bearer ")
            .trim_end_matches("-token")
            .to_owned();
        let user = match parts.headers.get("impersonate-user") {
            Some(user) => user.to_str().unwrap().to_owned(),
            None => user_of_token,
        };
        let attributes = Attributes::of(&parts);
        if !allows(&user, &attributes) {
            let status = json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403});
            return (StatusCode::FORBIDDEN, Json(status)).into_response();
        }
        state
            .proxy
            .passed
            .lock()
            .unwrap()
            .push(format!("{user} {}", attributes.verb));
    }
    let is_next = |next: &mut Overtaken| next.method == parts.method.as_str() && next.path == parts.uri.path();
    let overtaken = state.proxy.overtaken.lock().unwrap().take_if(is_next);
    if let Some(Overtaken { by, .. }) = overtaken {
        by.await;
    }
    pass_on(&state.cluster, parts, body).await
}

/// What the cluster answers to a request.
pub(super) async fn pass_on(cluster: &Client, parts: Parts, body: Bytes) -> Response {
    let request = http::Request::from_parts(parts, kube::client::Body::from(body));
    let (parts, body) = cluster.send(request).await.unwrap().into_parts();
    Response::from_parts(parts, Body::new(body))
}

fn review(review: &Value) -> Value {
    let spec = &review["spec"];
    if let Some(token) = spec["token"].as_str() {
        return match token.strip_suffix("-token") {
            Some(user) => json!({"authenticated": true, "user": {"username": user, "groups": ["people"]}}),
            None => json!({"authenticated": false, "user": {}}),
        };
    }
    let attributes = Attributes::reviewed(&spec["resourceAttributes"]);
    let allowed = allows(spec["user"].as_str().unwrap_or_default(), &attributes);
    json!({"allowed": allowed, "reason": "as the list says"})
}
