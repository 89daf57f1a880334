//! Pruning beside other writers of the definition: what was decided on must be what is changed.

use kindex_migrator::cluster::prune::{Pruned, prune};
use kindex_migrator::cluster::reconcile::Memory;
use kindex_migrator::cluster::survey::{Survey, survey};
use kindex_migrator::hash::Hash;
use kindex_migrator::verdict::{Question, Reason, Side, against};
use serde_json::json;

use super::stage::{GROUP, Stage, of_trials, trials};

async fn look_at(stage: &Stage) -> Survey {
    let mut surveys = survey(&stage.cluster).await.expect("surveyed");
    surveys.remove(&of_trials()).expect("the cluster has trials")
}

async fn prune_v1(stage: &Stage, survey: &Survey) -> Pruned {
    prune(&stage.cluster, &of_trials(), survey, "v1")
        .await
        .expect("an answer")
}

fn reasons(survey: &Survey) -> Vec<Reason> {
    against(&Question {
        version: "v1",
        hash: &Hash::of(GROUP, "v1", "Trial"),
        cluster: Side::Answered(Some(&survey.stored)),
        rows: Side::LeftOut,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_changed_after_the_decision_is_not_pruned() {
    let Some(stage) = Stage::start().await else { return };
    stage.store_trials_in("v1").await;
    stage.create_trials(3).await;
    stage.store_trials_in("v2").await;
    stage.reconcile(&mut Memory::default()).await;
    let start = stage
        .command(&["versions", "start", "trials"])
        .output()
        .await
        .expect("started");
    assert!(start.status.success(), "{start:?}");
    stage.migrate().await;
    let decided = look_at(&stage).await;
    assert_eq!(reasons(&decided), []);

    // Another writer of the status.
    stage.store_versions(&["v2", "v1"]).await;
    assert_eq!(prune_v1(&stage, &decided).await, Pruned::Overtaken);
    assert_eq!(stage.stored_versions().await, json!(["v2", "v1"]));
    let decided = look_at(&stage).await;
    assert_eq!(reasons(&decided), [], "the objects are what they were");

    // Another generation, in which objects may have been stored in v1 for a moment.
    let mut changed = trials("v2", &["v1", "v2", "v2beta1"]);
    changed["spec"]["names"]["shortNames"] = json!(["try"]);
    stage.define(&changed).await;
    assert_eq!(prune_v1(&stage, &decided).await, Pruned::Overtaken);
    let redefined = look_at(&stage).await;
    assert!(matches!(
        &*reasons(&redefined),
        [Reason::StoredVersions, Reason::Unknown, Reason::Redefined(_)]
    ));
    let refused = stage.run(&["versions", "drop", "trials", "v1"]).await;
    refused.expect(1, &["the CustomResourceDefinition changed after migration"]);
    assert_eq!(stage.stored_versions().await, json!(["v2", "v1"]));

    // Another definition of the same name.
    stage.delete_definition().await;
    assert_eq!(prune_v1(&stage, &redefined).await, Pruned::Overtaken);
    stage.store_trials_in("v1").await;
    stage.store_trials_in("v2").await;
    assert_eq!(prune_v1(&stage, &redefined).await, Pruned::Overtaken);
    assert_eq!(stage.stored_versions().await, json!(["v1", "v2"]));
    let recreated = look_at(&stage).await;
    assert!(matches!(
        &*reasons(&recreated),
        [Reason::StoredVersions, Reason::Unknown, Reason::Recreated(_)]
    ));
}
