//! One client of a cluster and of the kinds that no cluster has, told apart by the path of a request.

use http::Request;
use kindex_kube_api::request::{Target, parse_path};
use kindex_model::kind::Registry;
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// Asks `own` for the objects of kinds that no cluster has, and the cluster for everything else.
pub(super) fn together(cluster: Client, own: Client, registry: Registry) -> Client {
    let namespace = cluster.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let asked = if is_sql_only(&registry, request.uri().path()) {
            own.clone()
        } else {
            cluster.clone()
        };
        async move { asked.send(request).await }
    });
    Client::new(service, namespace)
}

fn is_sql_only(registry: &Registry, path: &str) -> bool {
    let Target::Resource(resource) = parse_path(path) else {
        return false;
    };
    let mut kinds = registry.sql_only_kinds();
    kinds.any(|kind| kind.group == resource.group && kind.plural == resource.plural)
}

#[cfg(test)]
mod tests {
    use kindex_model::kind::Kind;

    use super::*;

    static TEAM: Kind = Kind {
        name: "Team",
        plural: "teams",
        group: "g.example",
        cluster: false,
        ..Kind::EMPTY
    };
    static MODEL: Kind = Kind {
        name: "Model",
        plural: "models",
        group: "g.example",
        cluster: true,
        ..Kind::EMPTY
    };

    static KINDS: [&Kind; 2] = [&TEAM, &MODEL];

    /// As if the group alone counted, or events about an object were its kind's.
    #[test]
    fn only_the_objects_of_sql_only_kinds_are_elsewhere() {
        let registry = Registry {
            kinds: &KINDS,
            ..Registry::EMPTY
        };
        for path in [
            "/apis/g.example/v1/teams",
            "/apis/g.example/v2/namespaces/n/teams/a",
            "/apis/g.example/v1/namespaces/n/teams/a/status",
        ] {
            assert!(is_sql_only(&registry, path), "{path}");
        }
        for path in [
            "/apis/g.example/v1/models",
            "/apis/h.example/v1/teams",
            "/apis/g.example/v1",
            "/api/v1/namespaces/teams/events",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/teams.g.example",
        ] {
            assert!(!is_sql_only(&registry, path), "{path}");
        }
    }
}
