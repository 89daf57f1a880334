//! Lists by conditions: which of the two limits counts, how far a page begins, and what of a list's own options
//! applies.

use kindex_api::operations::Sizes;
use kindex_generated::kinds::model;
use kindex_harness::wait::eventually;
use serde_json::{Value, json};
use tonic::Code;

use super::client::Client;
use crate::api::stage::{MODELS, Stage, manifest, send, serve};

async fn list(client: &Client, options: Value, ext: Value) -> Value {
    let request = json!({"namespace": "default", "listOptions": options, "listOptionsExt": ext});
    let answer = client.call(&model::KIND, "List*", request.clone()).await;
    let mut answer = answer.unwrap_or_else(|status| panic!("{request}: {status:?}"));
    answer["modelList"].take()
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// Five models here, one elsewhere; a client of a server that passes over two objects at a time.
async fn models(stage: &Stage) -> Client {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    send(&stage.cluster, "POST", "/api/v1/namespaces", &namespace).await;
    let elsewhere = MODELS.replace("default", "other");
    let object = manifest(json!({"name": "elsewhere"}), json!({}));
    assert_eq!(send(&stage.api, "POST", &elsewhere, &object).await.0, 201);
    for name in ["e", "c", "a", "d", "b"] {
        stage.create(name, json!({}), json!({})).await;
    }
    let sizes = Sizes {
        passed: 2,
        page: 2,
        page_max: 4,
        ..Sizes::default()
    };
    let client = Client::plain(serve(stage.operations().with_sizes(sizes), None, stage.ground.stop()).await).await;
    eventually("all are stored", async || {
        let everywhere = json!({"listOptionsExt": {}});
        let all = client.call(&model::KIND, "List*", everywhere).await.unwrap();
        names(&all["modelList"]).len() == 6
    })
    .await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_search_begins_and_ends_where_it_is_asked_to() {
    let stage = Stage::on_sqlite().await;
    let client = models(&stage).await;
    let pages = |offset: u32, limit: u32| json!({"pagination": {"offset": offset, "limit": limit}});
    for (options, ext, found) in [
        (json!({}), json!({}), vec!["a", "b", "c", "d", "e"]),
        (json!({"limit": 3}), json!({}), vec!["a", "b", "c"]),
        (json!({"limit": 3}), pages(0, 1), vec!["a"]),
        (json!({"limit": 1}), pages(0, 3), vec!["a", "b", "c"]),
        (json!({"limit": 9}), json!({}), vec!["a", "b", "c", "d"]),
        (json!({}), pages(3, 9), vec!["d", "e"]),
        (json!({}), pages(5, 9), vec![]),
        (
            json!({"fieldSelector": "metadata.name!=c"}),
            pages(1, 2),
            vec!["b", "d"],
        ),
    ] {
        assert_eq!(
            names(&list(&client, options.clone(), ext.clone()).await),
            found,
            "{options} {ext}"
        );
    }
    // The token goes on behind the page, and nothing is passed over again.
    let first = list(&client, json!({}), pages(1, 2)).await;
    assert_eq!(names(&first), ["b", "c"]);
    let on = json!({"continue": first["metadata"]["continue"]});
    assert_eq!(names(&list(&client, on, pages(1, 2)).await), ["d", "e"]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_of_sql_which_has_no_versions_of_the_cluster() {
    let stage = Stage::on_sqlite().await;
    let client = models(&stage).await;
    let refused = async |options: Value, message: &str| {
        let request = json!({"listOptions": options, "listOptionsExt": {}});
        let status = client.call(&model::KIND, "List*", request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains(message), "{status:?}");
    };
    refused(json!({"resourceVersion": "1"}), "leave out resourceVersion").await;
    refused(json!({"limit": -1}), "less than 0").await;
    refused(json!({"continue": "nonsense"}), "continue").await;
    stage.end().await;
}
