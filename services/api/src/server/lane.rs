//! Which places a request takes: health and leases have places of their own, so that nobody else's requests keep them
//! waiting. What a program calls itself gives it nothing; the ingester asks the cluster, and not this server.

use axum::http::Method;
use axum::http::request::Parts;

use crate::grpc;

/// Sorts of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Whether the server, or what is behind it, is there. Asked by nobody in particular.
    Health,
    /// Of those who lead, and have to say so in time.
    Leases,
    Reads,
    Changes,
}

impl Lane {
    pub(super) fn of(head: &Parts) -> Self {
        let path = head.uri.path();
        if is_health(&head.method, path) {
            Self::Health
        } else if path.starts_with("/apis/coordination.k8s.io/") {
            Self::Leases
        } else if changes(head) {
            Self::Changes
        } else {
            Self::Reads
        }
    }
}

fn is_health(method: &Method, path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    match *method {
        Method::GET | Method::HEAD => matches!(first, "healthz" | "livez" | "readyz"),
        _ => first == "grpc.health.v1.Health",
    }
}

/// Whether a request is to change something: by its method, or by the name of its call where all methods are POST.
fn changes(head: &Parts) -> bool {
    if grpc::is_grpc(&head.headers) {
        let call = head.uri.path().rsplit('/').next().unwrap_or_default();
        return ["Create", "Update", "Delete"].iter().any(|verb| call.starts_with(verb));
    }
    has_body(&head.method)
}

/// Whether the body of a request says anything.
pub(super) fn has_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[test]
    fn health_and_leases_have_places_of_their_own_and_no_name_of_a_program_has() {
        for (method, path, agent, lane) in [
            ("GET", "/readyz/etcd", "", Lane::Health),
            ("POST", "/readyz", "", Lane::Changes),
            ("POST", "/grpc.health.v1.Health/Check", "", Lane::Health),
            (
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
                "",
                Lane::Leases,
            ),
            ("GET", "/api/v1/namespaces", "kindex-ingester/0.1.0", Lane::Reads),
            ("GET", "/api/v1/namespaces", "kubectl/v1", Lane::Reads),
            ("PATCH", "/api/v1/namespaces/a", "kubectl/v1", Lane::Changes),
        ] {
            let request = Request::builder().method(method).uri(path).header("user-agent", agent);
            let (head, ()) = request.body(()).expect("a request").into_parts();
            assert_eq!(Lane::of(&head), lane, "{method} {path}");
        }
    }
}
