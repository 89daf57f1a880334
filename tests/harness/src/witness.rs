//! Stands between a program and a kube-apiserver, and writes down what the program asks for in its own name: verb,
//! group and resource, in the words of RBAC. Passes everything on as it is, watches while they last.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http::Method;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;

/// What was asked: verb, API group and resource, with its subresource behind a slash.
pub type Permission = (String, String, String);

/// What a witness has seen so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Everything that was asked in the name of the token.
    pub asked: BTreeSet<Permission>,
    /// What of it was forbidden.
    pub forbidden: BTreeSet<Permission>,
}

/// A witness at work, until the process ends.
pub struct Witness {
    /// Where it listens, in plain HTTP on loopback.
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Clone)]
struct Post {
    cluster: Client,
    bearer_token: String,
    seen: Arc<Mutex<Seen>>,
}

impl Witness {
    /// Stands before the cluster of a kubeconfig and looks at what comes with this token.
    ///
    /// # Panics
    /// When the cluster cannot be reached as the file says.
    pub fn before(kubeconfig: &Path, token: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let (listener, address, cluster) = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let mut config = Config::from_custom_kubeconfig(file, &options).await.expect("a cluster");
            config.auth_info = AuthInfo::default();
            (config.read_timeout, config.default_retry) = (None, false);
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("bound");
            (listener, address, Client::try_from(config).expect("a client"))
        });
        let post = Post {
            cluster,
            bearer_token: format!("Bearer {token}"),
            seen: seen.clone(),
        };
        let router = axum::Router::new().fallback(pass).with_state(post);
        thread::spawn(move || runtime.block_on(async move { axum::serve(listener, router).await }));
        Self { address, seen }
    }

    /// What it has seen.
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn pass(State(post): State<Post>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(ACCEPT_ENCODING);
    let is_own = parts
        .headers
        .get(AUTHORIZATION)
        .is_some_and(|value| *value == post.bearer_token);
    let permission = permission(&parts.method, parts.uri.path(), parts.uri.query().unwrap_or_default());
    let body = to_bytes(body, usize::MAX).await.expect("requests are short");
    let request = http::Request::from_parts(parts, kube::client::Body::from(body));
    let answer = post.cluster.send(request).await;
    let status = answer.as_ref().map_or(502, |answer| answer.status().as_u16());
    if let (true, Some(permission)) = (is_own, permission) {
        let mut seen = post.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if status == 403 {
            seen.forbidden.insert(permission.clone());
        }
        seen.asked.insert(permission);
    }
    match answer {
        Ok(answer) => {
            let (parts, body) = answer.into_parts();
            Response::from_parts(parts, Body::new(body))
        }
        Err(error) => {
            let answer = Response::builder().status(status).body(error.to_string().into());
            answer.expect("a text is an answer")
        }
    }
}

/// What a request asks for; nothing where it is about no resource, such as `/version`.
/// <https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb>
fn permission(method: &Method, path: &str, query: &str) -> Option<Permission> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let (resource, name) = match rest {
        [] => return None,
        [resource] => ((*resource).to_owned(), None),
        [resource, name] => ((*resource).to_owned(), Some(name)),
        [resource, name, below @ ..] => (format!("{resource}/{}", below.join("/")), Some(name)),
    };
    let watches = query.split('&').any(|part| matches!(part, "watch=true" | "watch=1"));
    let verb = match (method.as_str(), name) {
        ("GET", _) if watches => "watch",
        ("GET", Some(_)) => "get",
        ("GET", None) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", Some(_)) => "delete",
        ("DELETE", None) => "deletecollection",
        (other, _) => other,
    };
    Some((verb.to_owned(), group.to_owned(), resource))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_named_as_rbac_names_them() {
        for (method, path, query, named) in [
            (Method::GET, "/apis/g/v2/models", "", "list g models"),
            (Method::GET, "/apis/g/v2/models", "limit=5&watch=true", "watch g models"),
            (Method::GET, "/apis/g/v2/namespaces/a/models/b", "", "get g models"),
            (
                Method::PATCH,
                "/apis/g/v2/namespaces/a/models/b/status",
                "",
                "patch g models/status",
            ),
            (
                Method::DELETE,
                "/apis/g/v2/namespaces/a/models",
                "",
                "deletecollection g models",
            ),
            (Method::POST, "/api/v1/namespaces/a/events", "", "create  events"),
            (Method::GET, "/api/v1/namespaces/a", "", "get  namespaces"),
        ] {
            let (verb, group, resource) = permission(&method, path, query).expect(path);
            assert_eq!(format!("{verb} {group} {resource}"), named);
        }
        assert_eq!(permission(&Method::GET, "/version", ""), None);
        assert_eq!(permission(&Method::GET, "/apis/g/v2", ""), None);
    }
}
