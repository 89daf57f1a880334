//! Who may speak for a holder of another service: whoever has the right to the plural of its kind.

use kindex_api::operations::RightsOf;
use kindex_model::reference::Service;
use serde_json::json;

use super::stage::{MODELS, Stage, manifest, send_with};

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

#[tokio::test(flavor = "multi_thread")]
async fn a_right_to_references_of_another_service_is_to_the_plural_that_crds_toml_names() {
    let stage = Stage::proxied(RightsOf::Caller, |registry| registry.services = SERVICES).await;
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
