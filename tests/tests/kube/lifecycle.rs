//! What the server does by itself: namespaces and definitions empty themselves, dependents follow their owners.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kindex_harness::wait::eventually;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::json;

use super::cluster::{TestCluster, new_widget, refusal, widget};

fn namespace(name: &str) -> Namespace {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn owned_by(owner: &DynamicObject, name: &str, blocks: bool) -> ConfigMap {
    let mut owned = ConfigMap::default();
    owned.metadata.name = Some(name.to_owned());
    owned.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "example.com/v1".to_owned(),
        kind: "Widget".to_owned(),
        name: owner.metadata.name.clone().unwrap(),
        uid: owner.metadata.uid.clone().unwrap(),
        block_owner_deletion: Some(blocks),
        controller: None,
    }]);
    owned
}

fn maps(cluster: &TestCluster) -> Api<ConfigMap> {
    Api::default_namespaced(cluster.client.clone())
}

async fn hold(api: &Api<DynamicObject>, name: &str, finalizers: &[&str]) {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn a_namespace_goes_when_its_last_object_does() {
    let cluster = TestCluster::with_widgets().await;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let inside: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), "shop", &widget());
    let refused = refusal(inside.create(&PostParams::default(), &new_widget("a", 1)).await);
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (404, "namespaces \"shop\" not found")
    );
    namespaces
        .create(&PostParams::default(), &namespace("shop"))
        .await
        .unwrap();
    inside
        .create(&PostParams::default(), &new_widget("a", 1))
        .await
        .unwrap();
    inside
        .create(&PostParams::default(), &new_widget("held", 1))
        .await
        .unwrap();
    hold(&inside, "held", &["example.com/hold"]).await;
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    eventually("the free object is gone", async || {
        inside.get_opt("a").await.unwrap().is_none()
    })
    .await;
    let terminating = namespaces.get("shop").await.unwrap();
    assert_eq!(terminating.status.unwrap().phase.as_deref(), Some("Terminating"));
    let refused = refusal(inside.create(&PostParams::default(), &new_widget("b", 1)).await);
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        "widgets.example.com \"b\" is forbidden: unable to create new content in namespace shop because it is being terminated"
    );
    hold(&inside, "held", &[]).await;
    eventually("the namespace is gone", async || {
        namespaces.get_opt("shop").await.unwrap().is_none()
    })
    .await;
    namespaces
        .create(&PostParams::default(), &namespace("shop"))
        .await
        .unwrap();
    assert!(inside.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn the_first_namespaces_stay() {
    let cluster = TestCluster::empty().await;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    for name in ["default", "kube-system"] {
        assert_eq!(
            refusal(namespaces.delete(name, &DeleteParams::default()).await).code,
            403
        );
    }
}

#[tokio::test]
async fn dependents_go_when_their_last_owner_does() {
    let cluster = TestCluster::with_widgets().await;
    let (one, two) = (cluster.create("one", 1).await, cluster.create("two", 1).await);
    let mut both = owned_by(&one, "both", false);
    both.metadata
        .owner_references
        .as_mut()
        .unwrap()
        .extend(owned_by(&two, "", false).metadata.owner_references.unwrap());
    maps(&cluster).create(&PostParams::default(), &both).await.unwrap();
    maps(&cluster)
        .create(&PostParams::default(), &owned_by(&one, "single", false))
        .await
        .unwrap();
    cluster.widgets().delete("one", &DeleteParams::default()).await.unwrap();
    eventually("the only owner's dependent is gone", async || {
        maps(&cluster).get_opt("single").await.unwrap().is_none()
    })
    .await;
    assert!(maps(&cluster).get_opt("both").await.unwrap().is_some());
    cluster.widgets().delete("two", &DeleteParams::default()).await.unwrap();
    eventually("the other is gone, too", async || {
        maps(&cluster).get_opt("both").await.unwrap().is_none()
    })
    .await;
}

#[tokio::test]
async fn a_dependent_of_an_owner_that_never_was_goes_at_once() {
    let cluster = TestCluster::with_widgets().await;
    let mut ghost = new_widget("ghost", 1);
    ghost.metadata.uid = Some("00000000-0000-4000-8000-000000000000".to_owned());
    maps(&cluster)
        .create(&PostParams::default(), &owned_by(&ghost, "orphan", false))
        .await
        .unwrap();
    eventually("it is gone", async || {
        maps(&cluster).get_opt("orphan").await.unwrap().is_none()
    })
    .await;
}

#[tokio::test]
async fn orphans_forget_their_owner_and_stay() {
    let cluster = TestCluster::with_widgets().await;
    let owner = cluster.create("owner", 1).await;
    maps(&cluster)
        .create(&PostParams::default(), &owned_by(&owner, "kept", false))
        .await
        .unwrap();
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    cluster.widgets().delete("owner", &orphan).await.unwrap();
    eventually("the owner is gone", async || {
        cluster.widgets().get_opt("owner").await.unwrap().is_none()
    })
    .await;
    assert_eq!(
        maps(&cluster).get("kept").await.unwrap().metadata.owner_references,
        None
    );
}

#[tokio::test]
async fn in_the_foreground_the_owner_waits_for_its_dependents() {
    let cluster = TestCluster::with_widgets().await;
    let owner = cluster.create("owner", 1).await;
    let mut held = owned_by(&owner, "held", true);
    held.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    maps(&cluster).create(&PostParams::default(), &held).await.unwrap();
    cluster
        .widgets()
        .delete("owner", &DeleteParams::foreground())
        .await
        .unwrap();
    eventually("the dependent is being deleted", async || {
        maps(&cluster)
            .get("held")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_some()
    })
    .await;
    let waiting = cluster.widgets().get("owner").await.unwrap();
    assert_eq!(waiting.metadata.finalizers, Some(vec!["foregroundDeletion".to_owned()]));
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps(&cluster)
        .patch("held", &PatchParams::default(), &release)
        .await
        .unwrap();
    eventually("the owner is gone", async || {
        cluster.widgets().get_opt("owner").await.unwrap().is_none()
    })
    .await;
}

#[tokio::test]
async fn what_was_being_deleted_is_finished_after_a_restart() {
    let cluster = TestCluster::with_widgets().await;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    namespaces
        .create(&PostParams::default(), &namespace("shop"))
        .await
        .unwrap();
    let inside: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), "shop", &widget());
    for n in 0..50 {
        inside
            .create(&PostParams::default(), &new_widget(&format!("w{n}"), 1))
            .await
            .unwrap();
    }
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    let cluster = cluster.restart().await;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    eventually("the namespace is gone", async || {
        namespaces.get_opt("shop").await.unwrap().is_none()
    })
    .await;
}
