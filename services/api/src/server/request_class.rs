//! Which class a request is of: health and leases have places of their own, so that nobody else's requests keep them
//! waiting. What a program calls itself gives it nothing; the ingester asks the cluster, and not this server.

use axum::http::Method;
use axum::http::request::Parts;
use kindex_kube_api::request::{Target, parse_path};
use kindex_serve::body;

use crate::grpc;

/// Classes of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestClass {
    /// Whether the server, or what is behind it, is there. Asked by nobody in particular.
    Health,
    /// Of those who lead, and have to say so in time.
    Leases,
    /// Changes nothing.
    Read,
    /// Changes something.
    Change,
}

impl RequestClass {
    pub(super) fn of(head: &Parts) -> Self {
        let path = head.uri.path();
        let asks = matches!(head.method, Method::GET | Method::HEAD);
        match parse_path(path) {
            Target::Health if asks => Self::Health,
            Target::Resource(path) if path.is_lease() => Self::Leases,
            _ if !asks && grpc::is_health(path) => Self::Health,
            _ if changes(head) => Self::Change,
            _ => Self::Read,
        }
    }
}

/// Whether a request is to change something: by its method, or by the name of its call where all methods are POST.
fn changes(head: &Parts) -> bool {
    if grpc::is_grpc(&head.headers) {
        let call = head.uri.path().rsplit('/').next().unwrap_or_default();
        return ["Create", "Update", "Delete"].iter().any(|verb| call.starts_with(verb));
    }
    body::is_expected(&head.method)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[test]
    fn health_and_leases_have_places_of_their_own_and_no_name_of_a_program_has() {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/a/leases/b";
        for (method, path, agent, class) in [
            ("GET", "/readyz/etcd", "", RequestClass::Health),
            ("POST", "/readyz", "", RequestClass::Change),
            ("POST", "/grpc.health.v1.Health/Check", "", RequestClass::Health),
            ("GET", "/grpc.health.v1.Health/Check", "", RequestClass::Read),
            ("PUT", leases, "", RequestClass::Leases),
            (
                "PUT",
                "/apis/coordination.k8s.io.example.org/v1/leases",
                "",
                RequestClass::Change,
            ),
            ("GET", "/apis/coordination.k8s.io/v1", "", RequestClass::Read),
            ("GET", "/api/v1/namespaces", "kindex-ingester/0.1.0", RequestClass::Read),
            ("GET", "/api/v1/namespaces", "kubectl/v1", RequestClass::Read),
            ("PATCH", "/api/v1/namespaces/a", "kubectl/v1", RequestClass::Change),
        ] {
            let request = Request::builder().method(method).uri(path).header("user-agent", agent);
            let (head, ()) = request.body(()).expect("a request").into_parts();
            assert_eq!(RequestClass::of(&head), class, "{method} {path}");
        }
    }
}
