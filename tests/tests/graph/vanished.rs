//! References that somebody takes off by hand.

use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use super::Stage;

#[tokio::test]
async fn a_reference_that_is_taken_off_by_hand_is_placed_again_and_reported() {
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.project().await;
    let reference = stage.reference("Cluster", "c").await;
    let network = stage.get("Network", "n").await.expect("it is there");
    let left: Vec<_> = network
        .finalizers()
        .iter()
        .filter(|one| **one != reference)
        .cloned()
        .collect();
    stage
        .patch("Network", "n", json!({"metadata": {"finalizers": left}}))
        .await;
    stage.until(|| stage.has(("Network", "n"), &reference)).await;
    let events: Api<Event> = Api::default_namespaced(stage.client.clone());
    let reported = || async {
        let events = events.list(&ListParams::default()).await.expect("events").items;
        events.into_iter().any(|event| {
            let of_network = event.involved_object.name.as_deref() == Some("n");
            let of_this = event.message.unwrap_or_default().contains(&reference);
            of_network && of_this && event.reason.as_deref() == Some("ReferenceVanished")
        })
    };
    stage.until(reported).await;
    stop.cancel();
    running.await.expect("it ends");
}

#[tokio::test]
async fn a_reference_of_another_service_is_reported_unless_the_change_names_it() {
    const KEPT: &str = "server.other.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
    const NAMED: &str = "server.other.example.com/00000000-f1cc-4f3b-b1c0-232ae8d852ce";
    let stage = Stage::start().await;
    let (stop, running) = stage.run();
    stage.project().await;
    let own = stage
        .get("Network", "n")
        .await
        .expect("it is there")
        .finalizers()
        .to_vec();
    let with = |references: &[&str]| {
        let references = references.iter().map(|one| (*one).to_owned());
        own.iter().cloned().chain(references).collect::<Vec<_>>()
    };
    let patch = |metadata: Value| stage.patch("Network", "n", json!({"metadata": metadata}));
    patch(json!({"finalizers": with(&[KEPT, NAMED])})).await;
    let annotations = json!({"platform.example.com/release-references": NAMED});
    patch(json!({"finalizers": with(&[KEPT]), "annotations": annotations})).await;
    patch(json!({"finalizers": with(&[])})).await;
    stage.until(|| stage.is_reported("n", "ReferenceVanished", KEPT)).await;
    assert!(!stage.is_reported("n", "ReferenceVanished", NAMED).await);
    stop.cancel();
    running.await.expect("it ends");
}
