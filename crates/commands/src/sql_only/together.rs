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
    use kindex_generated::kinds::{model, project};
    use kindex_model::kind::Kind;

    use super::*;

    static PROJECTS: Kind = Kind {
        cluster: false,
        ..project::KIND
    };
    static KINDS: [&Kind; 2] = [&PROJECTS, &model::KIND];

    /// As if the group alone counted, or events about an object were its kind's.
    #[test]
    fn only_the_objects_of_sql_only_kinds_are_elsewhere() {
        let registry = Registry {
            kinds: &KINDS,
            ..Registry::EMPTY
        };
        for path in [
            "/apis/michelangelo.api/v2/projects",
            "/apis/michelangelo.api/v3/namespaces/n/projects/a",
            "/apis/michelangelo.api/v2/namespaces/n/projects/a/status",
        ] {
            assert!(is_sql_only(&registry, path), "{path}");
        }
        for path in [
            "/apis/michelangelo.api/v2/models",
            "/apis/h.example/v2/projects",
            "/apis/michelangelo.api/v2",
            "/api/v1/namespaces/projects/events",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/projects.michelangelo.api",
        ] {
            assert!(!is_sql_only(&registry, path), "{path}");
        }
    }
}
