//! Who may speak for a holder of another service: whoever has the right to the plural of its kind.

use kindex_api::operations::RightsOf;
use kindex_model::reference::Service;
use serde_json::json;

use super::stage::{Ground, MODELS, Stage, manifest, send_with};

/// Where crds.toml says, nobody answers.
static REGION: Service = Service {
    name: "region",
    group: "region.example.com",
    cluster_scoped: &[],
    plurals: &[("CloudIdentity", "cloudidentities")],
    refers_to: &[],
    address: "http://127.0.0.1:1",
    ca_file: None,
    token_file: None,
};
static SERVICES: &[&Service] = &[&REGION];

/// Beside the region, behind a proxy that knows whose tokens allow what.
async fn beside_the_region() -> Stage {
    let mut ground = Ground::embedded().await;
    ground.registry.services = SERVICES;
    ground.seen_by_the_server = ground.proxy.serve_before(ground.config(), ground.stop()).await;
    let address = ground.sqlite();
    Stage::on(ground, &address, None, RightsOf::Caller).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_to_references_of_another_service_is_to_the_plural_that_crds_toml_names() {
    let stage = beside_the_region().await;
    let headers = [
        ("authorization", "Bearer root-token"),
        ("content-type", "application/json"),
    ];
    let body = manifest(json!({"name": "target"}), json!({})).to_string();
    let (code, created) = send_with(&stage.api, "POST", MODELS, &headers, body).await;
    assert_eq!(code, 201, "{created}");

    let asked = async |method: &str, holder: &str, resource: &str| {
        let token = format!("Bearer only-get+update/references@{resource}-token");
        let reference = format!("{holder}.region.example.com%2F7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce");
        let path = format!("/api/v1/models/default/target/references/{reference}");
        send_with(&stage.api, method, &path, &[("authorization", &token)], String::new()).await
    };
    for (holder, right, others) in [
        ("cloudidentity", "cloudidentities", "cloudidentitys"),
        // A kind without a plural of its own in crds.toml.
        ("network", "networks", "cloudidentities"),
    ] {
        for method in ["PUT", "DELETE"] {
            let (code, refused) = asked(method, holder, others).await;
            let said = refused["message"].as_str().unwrap_or_default();
            let wanted = format!("cannot update resource \"{right}/references\"");
            assert!(
                code == 403 && said.contains(&wanted),
                "{method} {holder}: {code} {refused}"
            );
            let (code, answer) = asked(method, holder, right).await;
            assert_eq!(code, 200, "{method} {holder}: {answer}");
        }
    }
    stage.end().await;
}
