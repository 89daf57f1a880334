//! Holders of other services: whether there is the object whose reference an object of ours has. Only its own service
//! can say that.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Request;
use kindex_kube_client::peer::Address;
use kindex_kube_client::{ClusterCause, ClusterError, outcome_of};
use kindex_model::causes::chain;
use kindex_model::object_state::State;
use kindex_model::reference_name::ReferenceName;
use kube::Client;
use kube::core::Status;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::Peers;
use super::answer::state;
use crate::decide::FoundHolder;
use crate::object::{Key, KindName};

/// How long a service may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// References on a holder that are known of it.
const HELD_BY_MAX: usize = 256;

/// A service whose objects may hold ours.
pub struct HolderService {
    address: Address,
    client: OnceCell<Client>,
}

impl From<Address> for HolderService {
    fn from(address: Address) -> Self {
        Self {
            address,
            client: OnceCell::new(),
        }
    }
}

impl Peers {
    /// Where the holder of a reference is, by its service: in the cluster or archived. And what it waits for.
    ///
    /// # Errors
    /// Where the service does not say whether there is one.
    pub async fn find(&self, reference: &ReferenceName) -> Result<Option<FoundHolder>, ClusterError> {
        let Some(service) = self.of_holders(reference.group()) else {
            let unknown = format!("no service of the group {} is known", reference.group());
            return Err(ClusterError::Refused(unknown));
        };
        let found = timeout(ANSWER_TIMEOUT, service.find(reference)).await;
        let found = found.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        found.map_err(|why| ClusterError::Retryable {
            cause: ClusterCause::Unavailable,
            retry_after: None,
            message: format!(
                "the service {} at {} does not answer: {why}",
                service.address.name, service.address.url
            ),
        })
    }
}

impl HolderService {
    async fn find(&self, reference: &ReferenceName) -> Result<Option<FoundHolder>, String> {
        let client = self.client.get_or_try_init(|| self.address.client()).await?;
        let request = Request::get(format!("/api/v1/references/{reference}?depth=1")).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        match client.request::<Value>(request).await {
            Ok(answer) => holder(reference, &answer).ok_or_else(|| "its answer shows no object".to_owned()),
            Err(kube::Error::Api(status)) if is_absence(reference, &status) => Ok(None),
            Err(error) => Err(chain(&error)),
        }
    }
}

/// Whether a service says that it has no such holder. That is said of this one, and not of the path: an address that
/// leads elsewhere says nothing.
fn is_absence(reference: &ReferenceName, status: &Status) -> bool {
    let details = status.details.as_ref();
    outcome_of(status).is_not_found() && details.is_some_and(|details| details.uid == reference.uid())
}

/// The holder, if the answer is about it: there is none any more once it is deleted.
fn holder(reference: &ReferenceName, answer: &Value) -> Option<Option<FoundHolder>> {
    if answer["uid"] != *reference.uid() {
        return None;
    }
    let text = |field: &str| answer[field].as_str().unwrap_or_default();
    let state = state(answer)?;
    let is_leaving = state == State::Deleting;
    match state {
        State::Live | State::Archived | State::Deleting => Some(Some(FoundHolder {
            key: Key {
                kind: KindName::new(reference.group().to_owned(), text("kind").to_owned()),
                namespace: text("namespace").into(),
                name: text("name").into(),
            },
            is_leaving,
            held_by: if is_leaving { held_by(answer) } else { BTreeSet::new() },
        })),
        State::Deleted => Some(None),
        State::Unknown => None,
    }
}

/// The references that keep it, of those that may wait for it in turn: of other services, its own one does not know
/// that. An older service does not say whether they keep it. Where they are too many, those of other services come
/// first: ours are among them.
fn held_by(answer: &Value) -> BTreeSet<ReferenceName> {
    let in_state = |wanted: State| {
        let holders = answer["holders"].as_array().into_iter().flatten();
        let keeping = holders.filter(move |holder| holder["holds"] == true && state(holder) == Some(wanted));
        keeping.filter_map(|holder| {
            let text = |field: &str| holder[field].as_str();
            ReferenceName::new(text("kind")?, text("group")?, text("uid")?).ok()
        })
    };
    let names = in_state(State::Unknown).chain(in_state(State::Deleting));
    names.take(HELD_BY_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use axum::http::StatusCode;
    use axum::{Json, Router};
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    const UID: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

    fn reference() -> ReferenceName {
        ReferenceName::new("Cluster", "compute.example.com", UID).expect("a name")
    }

    fn answer(uid: &str, state: &str) -> Value {
        json!({"uid": uid, "state": state, "kind": "Cluster", "namespace": "default", "name": "a"})
    }

    #[test]
    fn a_holder_is_there_until_its_service_says_that_it_is_not() {
        let said = |answer| holder(&reference(), &answer);
        for state in ["Live", "Archived", "Deleting"] {
            let found = said(answer(UID, state)).flatten().expect("it is there");
            assert_eq!(found.key.to_string(), "cluster.compute.example.com default/a");
            assert_eq!(found.is_leaving, state == "Deleting");
        }
        assert_eq!(said(answer(UID, "Deleted")), Some(None));
        for unclear in [
            answer(UID, "Unknown"),
            answer("another", "Live"),
            json!({}),
            Value::Null,
        ] {
            assert_eq!(said(unclear), None);
        }
    }

    #[test]
    fn what_a_deleted_holder_waits_for_is_known_as_far_as_it_may_wait_in_turn() {
        let held = |kind: &str, uid: &str, state: &str, holds: bool| json!({"kind": kind, "group": "x.example.com", "uid": uid, "state": state, "holds": holds});
        let answer = |state: &str| {
            let mut answer = answer(UID, state);
            answer["holders"] = json!([
                held("network", "of-another-service", "Unknown", true),
                held("Server", "deleted-too", "Deleting", true),
                held("Server", "only-names-it", "Deleting", false),
                held("Server", "stays", "Live", true),
                held("Server", "archived", "Archived", true),
                {"kind": "Server", "holds": true, "state": "Deleting"},
            ]);
            answer
        };
        let held_by = |state: &str| {
            let found = holder(&reference(), &answer(state)).flatten().expect("it is there");
            let names = found.held_by.iter().map(ToString::to_string);
            names.collect::<Vec<_>>()
        };
        let waits_for = [
            "network.x.example.com/of-another-service",
            "server.x.example.com/deleted-too",
        ];
        assert_eq!(held_by("Deleting"), waits_for);
        assert!(held_by("Live").is_empty(), "it waits for nothing");
        let mut many = answer("Deleting");
        let all = (0..=HELD_BY_MAX).map(|number| held("Server", &number.to_string(), "Deleting", true));
        many["holders"] = all.collect();
        let found = holder(&reference(), &many).flatten().expect("it is there");
        assert_eq!(found.held_by.len(), HELD_BY_MAX);
    }

    /// As if holders of the other service's own took the place of ours, without which no cycle is found.
    #[test]
    fn holders_of_other_services_are_known_however_many_of_its_own_are_deleted() {
        let held = |uid: &str, state: &str| {
            let group = "x.example.com";
            json!({"kind": "Server", "group": group, "uid": uid, "state": state, "holds": true})
        };
        let mut many = answer(UID, "Deleting");
        let own = (0..HELD_BY_MAX).map(|number| held(&number.to_string(), "Deleting"));
        many["holders"] = own.chain([held("ours", "Unknown")]).collect();
        let found = holder(&reference(), &many).flatten().expect("it is there");
        assert_eq!(found.held_by.len(), HELD_BY_MAX);
        assert!(found.held_by.iter().any(|name| name.uid() == "ours"));
    }

    #[test]
    fn only_what_is_said_of_this_holder_is_an_absence() {
        let said = |code: u16, details: Value| {
            let status = json!({"code": code, "message": "", "details": details});
            is_absence(&reference(), &serde_json::from_value(status).expect("a status"))
        };
        assert!(said(404, json!({"uid": UID})));
        assert!(!said(404, json!({})), "a path that leads nowhere");
        assert!(!said(404, json!({"uid": "another"})));
        let message = "admission webhook \"a.b.c\" denied the request: no";
        let status = json!({"code": 404, "reason": "NotFound", "message": message, "details": {"uid": UID}});
        let status = serde_json::from_value(status).expect("a status");
        assert!(!is_absence(&reference(), &status));
    }

    /// As if a holder were gone because a gateway relays, below a failure of its own, that another server has none.
    #[tokio::test]
    async fn a_gateway_that_fails_says_nothing_of_a_holder_whatever_it_relays() {
        let absence = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
            "reason": "NotFound", "message": "not found", "details": {"uid": UID}});
        for (code, is_absent) in [(404, true), (500, false), (502, false), (503, false)] {
            let code = StatusCode::from_u16(code).expect("a code");
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let url = format!("http://{}", listener.local_addr().expect("an address"));
            let relayed = absence.clone();
            let router = Router::new().fallback(move || ready((code, Json(relayed.clone()))));
            tokio::spawn(async move { axum::serve(listener, router).await });
            let address = Address {
                name: "compute".to_owned(),
                url,
                ca_file: None,
                token_file: None,
            };
            let found = HolderService::from(address).find(&reference()).await;
            assert_eq!(found.is_ok_and(|found| found.is_none()), is_absent, "{code}");
        }
    }
}
