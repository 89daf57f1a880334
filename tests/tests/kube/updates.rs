//! Writing through kube-rs: conflicts, preconditions, generations, the status apart from the rest.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};

use super::cluster::{TestCluster, new_widget, refusal};

fn version(object: &kube::api::DynamicObject) -> Option<String> {
    object.metadata.resource_version.clone()
}

#[tokio::test]
async fn a_stale_replace_is_a_conflict_in_the_servers_words() {
    let cluster = TestCluster::with_widgets().await;
    let stale = cluster.create("a", 1).await;
    cluster.resize("a", 2).await;
    let refused = refusal(cluster.widgets().replace("a", &PostParams::default(), &stale).await);
    assert_eq!((refused.code, refused.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        refused.message,
        "Operation cannot be fulfilled on widgets.example.com \"a\": the object has been modified; please apply your changes to \
         the latest version and try again"
    );
}

#[tokio::test]
async fn a_replace_without_a_version_is_refused() {
    let cluster = TestCluster::with_widgets().await;
    cluster.create("a", 1).await;
    let refused = refusal(
        cluster
            .widgets()
            .replace("a", &PostParams::default(), &new_widget("a", 2))
            .await,
    );
    assert_eq!(refused.code, 422);
    assert_eq!(
        refused.message,
        "widgets.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
}

#[tokio::test]
async fn a_change_of_nothing_writes_nothing_and_only_content_counts_as_generation() {
    let cluster = TestCluster::with_widgets().await;
    let created = cluster.create("a", 1).await;
    let same = cluster.resize("a", 1).await;
    assert_eq!(version(&same), version(&created));
    let widgets = cluster.widgets();
    let labels = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let labeled = widgets.patch("a", &PatchParams::default(), &labels).await.unwrap();
    assert_ne!(version(&labeled), version(&created));
    assert_eq!(labeled.metadata.generation, Some(1));
    assert_eq!(cluster.resize("a", 2).await.metadata.generation, Some(2));
}

#[tokio::test]
async fn the_status_changes_through_its_own_door_alone() {
    let cluster = TestCluster::with_widgets().await;
    let mut widget = new_widget("a", 1);
    widget.data["status"] = json!({"phase": "Forged"});
    let widgets = cluster.widgets();
    let created = widgets.create(&PostParams::default(), &widget).await.unwrap();
    assert_eq!(created.data["status"], Value::Null);
    let both = Patch::Merge(json!({"spec": {"size": 9}, "status": {"phase": "Ready"}}));
    let through_status = widgets.patch_status("a", &PatchParams::default(), &both).await.unwrap();
    assert_eq!(
        through_status.data,
        json!({"spec": {"size": 1, "color": "red"}, "status": {"phase": "Ready"}})
    );
    assert_eq!(through_status.metadata.generation, Some(1));
    let forged = Patch::Merge(json!({"spec": {"size": 9}, "status": {"phase": "Forged"}}));
    let through_main = widgets.patch("a", &PatchParams::default(), &forged).await.unwrap();
    assert_eq!(
        through_main.data,
        json!({"spec": {"size": 9, "color": "red"}, "status": {"phase": "Ready"}})
    );
    assert_eq!(through_main.metadata.generation, Some(2));
}

#[tokio::test]
async fn a_deletion_holds_to_its_preconditions() {
    let cluster = TestCluster::with_widgets().await;
    let created = cluster.create("a", 1).await;
    let changed = cluster.resize("a", 2).await;
    let widgets = cluster.widgets();
    let only = |preconditions| DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    };
    let stale = Preconditions {
        resource_version: version(&created),
        uid: None,
    };
    let refused = refusal(widgets.delete("a", &only(stale)).await);
    assert_eq!(
        (refused.code, refused.message),
        (
            409,
            format!(
                "Operation cannot be fulfilled on Widget.example.com \"a\": the ResourceVersion in the precondition ({}) \
                 does not match the ResourceVersion in record ({}). The object might have been modified",
                version(&created).unwrap(),
                version(&changed).unwrap()
            )
        )
    );
    let other = Preconditions {
        uid: Some("other".to_owned()),
        resource_version: None,
    };
    assert_eq!(refusal(widgets.delete("a", &only(other)).await).code, 409);
    let right = Preconditions {
        uid: changed.metadata.uid.clone(),
        resource_version: version(&changed),
    };
    widgets.delete("a", &only(right)).await.unwrap();
    assert!(widgets.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn a_dry_run_leaves_no_trace() {
    let cluster = TestCluster::with_widgets().await;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let widgets = cluster.widgets();
    let created = widgets.create(&dry, &new_widget("a", 1)).await.unwrap();
    assert!(created.metadata.uid.is_some());
    assert!(widgets.get_opt("a").await.unwrap().is_none());
    cluster.create("a", 1).await;
    let patch = Patch::Merge(json!({"spec": {"size": 5}}));
    let patched = widgets
        .patch("a", &PatchParams::default().dry_run(), &patch)
        .await
        .unwrap();
    assert_eq!(patched.data["spec"]["size"], 5);
    widgets.delete("a", &DeleteParams::default().dry_run()).await.unwrap();
    assert_eq!(widgets.get("a").await.unwrap().data["spec"]["size"], 1);
}

#[tokio::test]
async fn names_are_generated_and_taken_names_refused() {
    let cluster = TestCluster::with_widgets().await;
    let mut widget = new_widget("", 1);
    widget.metadata.name = None;
    widget.metadata.generate_name = Some("w-".to_owned());
    let created = cluster.widgets().create(&PostParams::default(), &widget).await.unwrap();
    let name = created.metadata.name.unwrap();
    assert!(name.starts_with("w-") && name.len() == 7, "{name}");
    let refused = refusal(
        cluster
            .widgets()
            .create(&PostParams::default(), &new_widget(&name, 1))
            .await,
    );
    assert_eq!((refused.code, refused.reason.as_str()), (409, "AlreadyExists"));
}

#[tokio::test]
async fn many_writers_of_one_object_all_succeed_with_patches() {
    let cluster = TestCluster::with_widgets().await;
    cluster.create("a", 1).await;
    let writers = (0..8).map(|n| {
        let widgets = cluster.widgets();
        async move {
            for round in 0..5 {
                let key = format!("k{n}-{round}");
                let patch = Patch::Merge(json!({"metadata": {"labels": {key: "x"}}}));
                widgets.patch("a", &PatchParams::default(), &patch).await.unwrap();
            }
        }
    });
    futures::future::join_all(writers).await;
    assert_eq!(
        cluster.widgets().get("a").await.unwrap().metadata.labels.unwrap().len(),
        40
    );
}
