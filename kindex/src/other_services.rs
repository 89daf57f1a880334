//! Other services, in commands about references: at the addresses of crds.toml, or of `--service GROUP=URL`. Asks about
//! their objects as `kindex deletion` does.

use kindex_api::operations;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::object::{Key, KindName};
use kindex_deletion::peer::address::Address;
use kindex_deletion::peer::{Peers, Transport};
use kindex_kube_client::ClusterError;
use kindex_maintenance::references::{Bearer, Bearing, OtherServices};
use kindex_model::kind::Registry;

use crate::error::{CommandError, CommandResult};

/// Group and URL of each `--service`.
///
/// # Errors
/// One that is no GROUP=URL.
pub(crate) fn addresses(services: &[String]) -> CommandResult<Vec<(&str, &str)>> {
    let pairs = services.iter().map(|service| {
        let pair = service.split_once('=').filter(|(group, _)| !group.is_empty());
        pair.ok_or_else(|| {
            let wrong = CommandError::usage(format_args!("--service {service}: no GROUP=URL"));
            wrong.hint("write it like region.example.com=https://region.example.com:6443")
        })
    });
    pairs.collect()
}

/// Those that are asked about holders.
pub(crate) fn of_holders(registry: &Registry, addresses: &[(&str, &str)]) -> operations::Peers {
    let declared = operations::Peers::of(registry);
    addresses
        .iter()
        .fold(declared, |peers, (group, url)| peers.at(group, url))
}

/// Those whose objects fields of ours name.
pub(crate) struct Targets(Peers);

impl Targets {
    pub(crate) fn of(registry: &Registry, addresses: &[(&str, &str)]) -> Self {
        let foreign = Kinds::of(registry).foreign().into_iter();
        let foreign = foreign.map(|(kind, service)| {
            let mut address = Address::from(service);
            for (_, url) in addresses.iter().filter(|(group, _)| *group == kind.group) {
                address.move_to(url);
            }
            (kind, address)
        });
        Self(Peers::new(foreign, &Transport::Events))
    }
}

impl OtherServices for Targets {
    async fn look(&self, at: &Bearer) -> Result<Option<Bearing>, String> {
        let key = Key {
            kind: KindName::new(at.group, at.kind),
            namespace: at.namespace.clone(),
            name: at.name.clone(),
        };
        let Some(peer) = self.0.of(&key.kind) else {
            return Err(format!("no service with the kind {} is known", key.kind));
        };
        let found = peer.look(&key).await.map_err(|error| match error {
            ClusterError::Retryable { message, .. } => message,
            other => other.to_string(),
        })?;
        let staying = found.filter(|object| !object.is_leaving());
        Ok(staying.map(|object| Bearing {
            uid: object.uid,
            references: object.references,
        }))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::routing::{MethodRouter, get};
    use axum::{Json, Router};
    use kindex_generated::kinds::model;
    use kindex_model::kind::Kind;
    use kindex_model::reference::{Named, OnDelete, Reference, Service, Target};
    use kindex_model::reference_name::ReferenceName;
    use serde_json::{Value, json};

    use super::*;

    const GROUP: &str = "region.example.com";
    const HELD: &str = "model.michelangelo.api/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

    static REGION: Service = Service {
        name: "region",
        group: GROUP,
        cluster_scoped: &[],
        address: "http://127.0.0.1:1",
        ca_file: None,
        token_file: None,
    };
    const NETWORK: Reference = Reference {
        name: "network",
        targets: &[Target {
            service: Some(&REGION),
            group: GROUP,
            kind: "Network",
        }],
        kind_column: None,
        path: &["spec", "network"],
        named: Named::Name,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Block,
    };

    /// They name networks of the region.
    static MODELS: Kind = Kind {
        references: &[NETWORK],
        ..model::KIND
    };
    static KINDS: [&Kind; 1] = [&MODELS];

    fn targets(addresses: &[(&str, &str)]) -> Targets {
        let registry = Registry {
            kinds: &KINDS,
            ..kindex_generated::registry()
        };
        Targets::of(&registry, addresses)
    }

    fn says(code: StatusCode, answer: Value) -> MethodRouter {
        get(move || async move { (code, Json(answer)) })
    }

    /// A region with a network that bears a reference, and with one that is being deleted.
    async fn region() -> String {
        let version = json!({"groupVersion": "region.example.com/v1", "version": "v1"});
        let groups = json!({"kind": "APIGroupList", "apiVersion": "v1",
            "groups": [{"name": GROUP, "versions": [version], "preferredVersion": version}]});
        let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "region.example.com/v1",
            "resources": [{"name": "networks", "singularName": "network", "namespaced": true, "kind": "Network",
                "verbs": ["get"]}]});
        let absent = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
            "message": "not found", "code": 404, "details": {"name": "absent"}});
        let bears = |state: &str| json!({"target": {"uid": "u", "state": state}, "references": [{"name": HELD}]});
        let at = |name: &str| format!("/api/v1/networks.region.example.com/default/{name}/references");
        let router = Router::new()
            .route("/apis", says(StatusCode::OK, groups))
            .route("/apis/region.example.com/v1", says(StatusCode::OK, resources))
            .route(&at("blue"), says(StatusCode::OK, bears("Live")))
            .route(&at("leaving"), says(StatusCode::OK, bears("Deleting")))
            .route(&at("absent"), says(StatusCode::NOT_FOUND, absent));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(axum::serve(listener, router).into_future());
        format!("http://{address}")
    }

    fn network(name: &str) -> Bearer {
        Bearer {
            kind: "Network",
            group: GROUP,
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    #[tokio::test]
    async fn an_object_is_looked_up_at_its_service() {
        let url = region().await;
        let moved = targets(&[(GROUP, url.as_str())]);
        let held: ReferenceName = HELD.parse().expect("a name");
        let bearing = moved.look(&network("blue")).await.expect("an answer");
        let bearing = bearing.expect("it is there");
        assert_eq!((bearing.uid.as_str(), bearing.references.contains(&held)), ("u", true));
        for name in ["leaving", "absent"] {
            assert_eq!(moved.look(&network(name)).await, Ok(None), "{name} needs no reference");
        }
        let why = targets(&[]).look(&network("blue")).await.expect_err("nobody is there");
        assert!(
            why.starts_with("the service region at http://127.0.0.1:1 does not answer: "),
            "{why}"
        );
    }
}
