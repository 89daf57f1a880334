//! gRPC without metadata storage: as REST, the cluster as it is.

use kindex_generated::kinds::model;
use serde_json::json;
use tonic::Code;

use super::client::Client;
use crate::api::storage_off::Through;

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_handed_on_and_searches_are_refused_with_the_reason() {
    let through = Through::begin().await;
    let client = Client::plain(through.address).await;
    let at = json!({"name": "a", "namespace": "default"});
    let model = json!({"model": {"metadata": {"name": "a", "namespace": "default"}}});
    let created = client.call(&model::KIND, "Create*", model).await.unwrap();
    assert!(created["model"]["metadata"]["finalizers"].is_null(), "{created}");
    let search = json!({"namespace": "default", "listOptionsExt": {}});
    let refused = client.call(&model::KIND, "List*", search).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert!(refused.message().contains("metadata storage is off"), "{refused:?}");
    let listed = client
        .call(&model::KIND, "List*", json!({"namespace": "default"}))
        .await
        .unwrap();
    assert_eq!(
        listed["modelList"]["items"].as_array().map(Vec::len),
        Some(1),
        "{listed}"
    );
    client.call(&model::KIND, "Delete*", at.clone()).await.unwrap();
    let gone = client.call(&model::KIND, "Get*", at).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound, "gone at once: no ingester is asked");
    through.end();
}
