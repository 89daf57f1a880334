//! Lists in pages, by selectors, at versions.

use kube::api::{DeleteParams, ListParams};

use super::cluster::{TestCluster, refusal};

async fn with_seven() -> TestCluster {
    let cluster = TestCluster::with_widgets().await;
    for n in 1..=7 {
        cluster.create(&format!("w{n}"), n).await;
    }
    cluster
}

#[tokio::test]
async fn pages_show_one_moment_whatever_happens_in_between() {
    let cluster = with_seven().await;
    let widgets = cluster.widgets();
    let mut page = widgets.list(&ListParams::default().limit(3)).await.unwrap();
    let version = page.metadata.resource_version.clone();
    assert_eq!(page.metadata.remaining_item_count, Some(4));
    widgets.delete("w5", &DeleteParams::default()).await.unwrap();
    cluster.create("w55", 1).await;
    let mut names: Vec<String> = Vec::new();
    loop {
        names.extend(page.items.iter().filter_map(|item| item.metadata.name.clone()));
        assert_eq!(page.metadata.resource_version, version);
        let Some(token) = page.metadata.continue_.filter(|token| !token.is_empty()) else {
            break;
        };
        page = widgets
            .list(&ListParams::default().limit(3).continue_token(&token))
            .await
            .unwrap();
    }
    assert_eq!(names, ["w1", "w2", "w3", "w4", "w5", "w6", "w7"]);
    let now = widgets.list(&ListParams::default()).await.unwrap();
    assert_eq!(now.items.len(), 7);
    assert!(
        now.items
            .iter()
            .any(|item| item.metadata.name.as_deref() == Some("w55"))
    );
}

#[tokio::test]
async fn selectors_and_pages_go_together() {
    let cluster = with_seven().await;
    let patch = kube::api::Patch::Merge(serde_json::json!({"metadata": {"labels": {"odd": "yes"}}}));
    for name in ["w1", "w3", "w5", "w7"] {
        cluster
            .widgets()
            .patch(name, &Default::default(), &patch)
            .await
            .unwrap();
    }
    let params = ListParams::default().labels("odd in (yes),!even").limit(3);
    let page = cluster.widgets().list(&params).await.unwrap();
    assert_eq!(page.items.len(), 3);
    assert_eq!(page.metadata.remaining_item_count, None);
    let rest = params.continue_token(&page.metadata.continue_.unwrap());
    let rest = cluster.widgets().list(&rest).await.unwrap();
    assert_eq!(
        rest.items
            .iter()
            .filter_map(|item| item.metadata.name.as_deref())
            .collect::<Vec<_>>(),
        ["w7"]
    );
    assert!(rest.metadata.continue_.is_none_or(|token| token.is_empty()));
    let one = cluster
        .widgets()
        .list(&ListParams::default().fields("metadata.name=w2,spec.color=red"))
        .await
        .unwrap();
    assert_eq!(one.items.len(), 1);
}

#[tokio::test]
async fn a_token_from_before_the_history_has_expired() {
    let cluster = TestCluster::with_history(20).await;
    cluster.install_widgets().await;
    cluster.create("a", 1).await;
    cluster.create("b", 1).await;
    let page = cluster.widgets().list(&ListParams::default().limit(1)).await.unwrap();
    for size in 2..40 {
        cluster.resize("a", size).await;
    }
    let rest = ListParams::default()
        .limit(1)
        .continue_token(&page.metadata.continue_.unwrap());
    let refused = refusal(cluster.widgets().list(&rest).await);
    assert_eq!((refused.code, refused.reason.as_str()), (410, "Expired"));
    assert!(refused.message.contains("continue parameter is too old"), "{refused:?}");
}

#[tokio::test]
async fn an_exact_version_and_one_not_older_are_distinguished() {
    let cluster = with_seven().await;
    let then = cluster
        .widgets()
        .get("w3")
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let exact = ListParams::default().at(&then).matching(kube::api::VersionMatch::Exact);
    assert_eq!(cluster.widgets().list(&exact).await.unwrap().items.len(), 3);
    let fresh = ListParams::default()
        .at(&then)
        .matching(kube::api::VersionMatch::NotOlderThan);
    assert_eq!(cluster.widgets().list(&fresh).await.unwrap().items.len(), 7);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let cluster = with_seven().await;
    let some = ListParams::default().fields("metadata.name!=w1");
    cluster
        .widgets()
        .delete_collection(&DeleteParams::default(), &some)
        .await
        .unwrap();
    let left = cluster.widgets().list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 1);
}
