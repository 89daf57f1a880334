//! What others take away or bring back is set right without a restart.

use std::time::Duration;

use kindex_harness::wait::eventually;
use kindex_migrator::certificate::CertificateRotator;
use kindex_migrator::wire::definition;
use kube::Api;
use kube::api::DynamicObject;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::stage::{GROUP, NAME, Stage, hash};

#[tokio::test(flavor = "multi_thread")]
async fn definitions_that_somebody_deleted_are_installed_again() {
    let Some(stage) = Stage::start().await else { return };
    stage.create_pets("v1", 3).await;
    let running = stage.run(stage.client.clone(), true, 0);
    let migrated = async || stage.state().await == (vec![hash("v1")], hash("v1"));
    eventually("the migration", migrated).await;
    let api: Api<DynamicObject> = Api::all_with(stage.client.clone(), &definition::resource());
    let name = "storagestates.migration.k8s.io";
    let before = api.get(name).await.expect("a definition").metadata.uid;
    kindex_harness::definition::delete(&api, name).await;
    eventually("another definition", async || {
        let now = api.get_opt(name).await.expect("an answer");
        now.is_some_and(|now| now.metadata.uid != before)
    })
    .await;
    eventually("the migration", migrated).await;
    eventually("readiness", async || running.migrator.not_ready().is_empty()).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_is_applied_anew_gets_its_authority_before_the_next_look() {
    let Some(stage) = Stage::start().await else { return };
    let secret = "default/webhook".parse().expect("a Secret");
    let address = "default/kindex".parse().expect("a Service");
    let rotator = CertificateRotator::new(stage.client.clone(), secret, address, vec![NAME.to_owned()]);
    let tls = rotator.tls().await.expect("a certificate");
    let stop = CancellationToken::new();
    let kept = tokio::spawn(rotator.follow(tls, Duration::from_secs(3_600), stop.clone()));
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let manifest = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"kind": "Pet", "plural": "pets"},
            "versions": [version("v1", false), version("v2", true)],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "kindex", "name": "other", "path": "/convert"}}}}}});
    let api: Api<DynamicObject> = Api::all_with(stage.client.clone(), &definition::resource());
    for _ in 0..2 {
        stage.apply(&definition::resource(), &manifest).await;
        eventually("the authority", async || {
            let now = api.get(NAME).await.expect("a definition");
            let config = &now.data["spec"]["conversion"]["webhook"]["clientConfig"];
            config["caBundle"].is_string() && config["service"]["name"] == "kindex"
        })
        .await;
        kindex_harness::definition::delete(&api, NAME).await;
    }
    stop.cancel();
    kept.await.expect("it ends");
}
