//! What `kindex deletion` has reported of an object last: the text of its event, where one is kept.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kindex_api::operations::{Node, State};
use kube::Client;
use kube::api::{Api, ListParams};

/// The events that say what a deletion waits for.
const REASONS: [&str; 2] = ["DeletionDraining", "CleanupFailed"];
/// Objects that are asked about, at most.
const OBJECTS_MAX: usize = 20;

/// The last words on one object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LastEvent {
    pub(crate) at: Option<Timestamp>,
    pub(crate) message: String,
}

/// By uid, of the objects at the end of a tree that are being deleted here. Who may not read events has none.
pub(crate) async fn of_roots(client: &Client, tree: &Node) -> BTreeMap<String, LastEvent> {
    let mut found = BTreeMap::new();
    let roots = tree.roots().into_iter();
    let roots = roots.filter(|root| root.state == State::Deleting && root.service.is_empty());
    for root in roots.take(OBJECTS_MAX) {
        let namespace = match root.namespace.as_str() {
            "" => "default",
            namespace => namespace,
        };
        let events: Api<Event> = Api::namespaced(client.clone(), namespace);
        let about = ListParams::default().fields(&format!("involvedObject.uid={}", root.uid));
        match events.list(&about).await {
            Ok(events) => found.extend(last(events.items).map(|found| (root.uid.clone(), found))),
            Err(error) => tracing::debug!(object = root.label(), %error, "Its events cannot be read"),
        }
    }
    found
}

fn last(events: Vec<Event>) -> Option<LastEvent> {
    let says = |event: &Event| REASONS.iter().any(|reason| event.reason.as_deref() == Some(*reason));
    let found = events.into_iter().filter(says).filter_map(|event| {
        let at = event.last_timestamp.map(|time| time.0);
        event.message.map(|message| LastEvent { at, message })
    });
    found.max_by_key(|found| found.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(reason: &str, message: &str, at: &str) -> Event {
        let event = serde_json::json!({
            "metadata": {"name": message},
            "involvedObject": {"name": "a"},
            "reason": reason,
            "message": message,
            "lastTimestamp": at,
        });
        serde_json::from_value(event).expect("an event")
    }

    #[test]
    fn the_last_event_on_what_is_waited_for_counts() {
        let events = [
            event("DeletionDraining", "two", "2026-11-24T11:59:00Z"),
            event("CleanupFailed", "three", "2026-11-24T12:00:00Z"),
            event("ReferenceRefused", "four", "2026-11-24T12:01:00Z"),
            event("DeletionDraining", "one", "2026-11-24T11:58:00Z"),
        ];
        let found = last(events.to_vec()).expect("there is one");
        assert_eq!(found.message, "three");
        assert_eq!(last(events[2..3].to_vec()), None);
    }
}
