//! Other services, in commands about references: at the addresses of crds.toml, or of `--service NAME=URL`. Asks about
//! their objects as `kindex deletion` does.

use std::collections::BTreeSet;

use kindex_api::operations;
use kindex_deletion::kinds::Kinds;
use kindex_deletion::object::{Key, KindName};
use kindex_deletion::peer::{Peer, Peers, Transport};
use kindex_kube_client::ClusterError;
use kindex_kube_client::peer::Address;
use kindex_maintenance::references::{ListedPage, PeerApi, PeerFailure, ReferencedObject, ReferencedState};
use kindex_model::kind::Registry;

use crate::error::CommandResult;
use crate::service_flag::{declared, known, services};

/// Notes on addresses that no question went to. A group that crds.toml does not declare is no error if an object
/// has a reference of a holder with that group.
pub(crate) fn unasked<'a>(
    registry: &Registry,
    addresses: &[(&str, &str)],
    holders: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let mut groups: BTreeSet<&str> = services(registry).map(|service| service.group).collect();
    groups.extend(holders);
    let unknown = addresses.iter().filter(|(group, _)| !groups.contains(group));
    let notes = unknown.map(|(group, url)| {
        format!(
            "--service {group}={url} has no effect: crds.toml declares no service {group}, and no holder that was \
             found is of such a service; {}",
            known(registry)
        )
    });
    notes.collect()
}

/// Those that are asked about holders.
pub(crate) fn of_holders(registry: &Registry, addresses: &[(&str, &str)]) -> operations::Peers {
    let declared = operations::Peers::of(registry);
    addresses
        .iter()
        .fold(declared, |peers, (group, url)| peers.at(group, url))
}

/// Those that are asked about objects which fields of ours name or are to name.
///
/// # Errors
/// Those of [`declared`].
pub(crate) fn of_targets(registry: &Registry, given: &[String]) -> CommandResult<operations::Peers> {
    let address = |said| declared(registry, said).map(|(service, url)| (service.group, url));
    let addresses = given.iter().map(|said| address(said.as_str()));
    Ok(of_holders(registry, &addresses.collect::<CommandResult<Vec<_>>>()?))
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

    fn peer(&self, kind: &KindName) -> Result<&Peer, PeerFailure> {
        self.0.of(kind).ok_or_else(|| PeerFailure {
            why: format!("no service with the kind {kind} is known"),
            is_silent: false,
        })
    }
}

fn failure(error: ClusterError) -> PeerFailure {
    match error {
        ClusterError::Retryable { message, .. } => PeerFailure {
            why: message,
            is_silent: true,
        },
        other => PeerFailure {
            why: other.to_string(),
            is_silent: false,
        },
    }
}

impl PeerApi for Targets {
    async fn look(&self, at: &ReferencedObject) -> Result<Option<ReferencedState>, PeerFailure> {
        let key = Key {
            kind: KindName::new(at.group, at.kind),
            namespace: at.namespace.as_str().into(),
            name: at.name.as_str().into(),
        };
        let found = self.peer(&key.kind)?.look(&key).await.map_err(failure)?;
        Ok(found.map(|object| ReferencedState {
            leaving: object.is_leaving(),
            uid: object.uid,
            references: object.references,
        }))
    }

    async fn list(
        &self,
        group: &'static str,
        kind: &'static str,
        token: Option<&str>,
    ) -> Result<ListedPage, PeerFailure> {
        let peer = self.peer(&KindName::new(group, kind))?;
        let (keys, next) = peer.page(token).await.map_err(failure)?;
        let objects = keys
            .into_iter()
            .map(|key| (key.namespace.to_string(), key.name.to_string()));
        Ok(ListedPage {
            objects: objects.collect(),
            next,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use axum::extract::Query;
    use axum::http::StatusCode;
    use axum::routing::{MethodRouter, get};
    use axum::{Json, Router};
    use kindex_model::reference_name::ReferenceName;
    use serde_json::{Value, json};

    use super::*;
    use crate::fixture::{GROUP, naming_region};

    const HELD: &str = "model.michelangelo.api/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

    fn targets(addresses: &[(&str, &str)]) -> Targets {
        Targets::of(&naming_region(), addresses)
    }

    fn says(code: StatusCode, answer: Value) -> MethodRouter {
        get(move || async move { (code, Json(answer)) })
    }

    /// A region with a network that has a reference, and with one that is being deleted.
    async fn region() -> String {
        let version = json!({"groupVersion": "region.example.com/v1", "version": "v1"});
        let groups = json!({"kind": "APIGroupList", "apiVersion": "v1",
            "groups": [{"name": GROUP, "versions": [version], "preferredVersion": version}]});
        let resources = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "region.example.com/v1",
            "resources": [{"name": "networks", "singularName": "network", "namespaced": true, "kind": "Network",
                "verbs": ["get"]}]});
        let absent = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
            "message": "not found", "code": 404, "details": {"name": "absent"}});
        let forbidden = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
            "message": "forbidden", "code": 403});
        let has_reference =
            |state: &str| json!({"target": {"uid": "u", "state": state}, "references": [{"name": HELD}]});
        let at = |name: &str| format!("/api/v1/networks.region.example.com/default/{name}/references");
        let router = Router::new()
            .route("/apis", says(StatusCode::OK, groups))
            .route("/apis/region.example.com/v1", says(StatusCode::OK, resources))
            .route("/apis/region.example.com/v1/networks", get(listed))
            .route(&at("blue"), says(StatusCode::OK, has_reference("Live")))
            .route(&at("leaving"), says(StatusCode::OK, has_reference("Deleting")))
            .route(&at("absent"), says(StatusCode::NOT_FOUND, absent))
            .route(&at("secret"), says(StatusCode::FORBIDDEN, forbidden));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(axum::serve(listener, router).into_future());
        format!("http://{address}")
    }

    /// A page with one of two networks.
    async fn listed(Query(parameters): Query<BTreeMap<String, String>>) -> Json<Value> {
        let (name, token) = match parameters.get("continue").map(String::as_str) {
            Some("after-blue") => ("leaving", ""),
            _ => ("blue", "after-blue"),
        };
        Json(
            json!({"kind": "NetworkList", "apiVersion": "region.example.com/v1", "metadata": {"continue": token},
            "items": [{"metadata": {"namespace": "default", "name": name}}]}),
        )
    }

    fn network(name: &str) -> ReferencedObject {
        ReferencedObject {
            kind: "Network",
            group: GROUP,
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn only_a_declared_service_has_targets() {
        let given = |name: &str| of_targets(&naming_region(), &[format!("{name}=http://127.0.0.1:1")]);
        assert!(given("region").is_ok() && given(GROUP).is_ok());
        let why = given("nowhere.example.com").err().expect("refused").to_string();
        assert!(
            why.contains("crds.toml declares no service nowhere.example.com"),
            "{why}"
        );
    }

    #[test]
    fn a_service_of_which_nothing_can_be_asked_is_named_with_those_that_are_declared() {
        let holders = || std::iter::once("michelangelo.api");
        let known = [(GROUP, "http://a"), ("michelangelo.api", "http://b")];
        assert_eq!(unasked(&naming_region(), &known, holders()), Vec::<String>::new());
        let none = unasked(&naming_region(), &[("regio.example.com", "http://a")], holders());
        assert_eq!(none.len(), 1);
        assert!(
            none[0].starts_with("--service regio.example.com=http://a has no effect"),
            "{none:?}"
        );
        assert!(
            none[0].ends_with("; declared are: region (region.example.com)"),
            "{none:?}"
        );
        let empty = Registry {
            kinds: &[],
            ..naming_region()
        };
        let none = unasked(&empty, &[(GROUP, "http://a")], std::iter::empty());
        assert!(none[0].ends_with("; [services] in crds.toml declares none"), "{none:?}");
    }

    #[tokio::test]
    async fn an_object_is_looked_up_at_its_service() {
        let url = region().await;
        let moved = targets(&[(GROUP, url.as_str())]);
        let held: ReferenceName = HELD.parse().expect("a name");
        let state = moved.look(&network("blue")).await.expect("an answer");
        let state = state.expect("it is there");
        assert_eq!((state.uid.as_str(), state.references.contains(&held)), ("u", true));
        let leaving = moved.look(&network("leaving")).await.expect("an answer");
        assert!(leaving.is_some_and(|found| found.leaving) && !state.leaving);
        assert_eq!(moved.look(&network("absent")).await, Ok(None));
        let failure = targets(&[]).look(&network("blue")).await.expect_err("nobody is there");
        let silence = "the service region at http://127.0.0.1:1 does not answer: ";
        assert!(failure.is_silent && failure.why.starts_with(silence), "{failure:?}");
        let refused = moved.look(&network("secret")).await.expect_err("it is refused");
        assert!(!refused.is_silent, "{refused:?}");
    }

    #[tokio::test]
    async fn the_objects_of_a_kind_are_listed_page_by_page() {
        let url = region().await;
        let moved = targets(&[(GROUP, url.as_str())]);
        let page = async |token: Option<&str>| moved.list(GROUP, "Network", token).await.expect("a page");
        let blue = page(None).await;
        assert_eq!(blue.objects, [("default".to_owned(), "blue".to_owned())]);
        let leaving = page(blue.next.as_deref()).await;
        assert_eq!(leaving.objects, [("default".to_owned(), "leaving".to_owned())]);
        assert_eq!(leaving.next, None, "an empty token leads nowhere");
        let unknown = moved.list(GROUP, "Router", None).await.expect_err("it is not declared");
        assert_eq!(
            unknown.why,
            "no service with the kind router.region.example.com is known"
        );
        let silent = targets(&[]).list(GROUP, "Network", None).await;
        assert!(silent.expect_err("nobody is there").is_silent);
    }
}
