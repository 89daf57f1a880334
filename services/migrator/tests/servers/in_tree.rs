//! Migrations through the migrator of kube-controller-manager.

use std::time::Duration;

use kindex_harness::controlplane::apart::Controllers;
use kindex_harness::wait::{WAIT_MAX, eventually};
use kindex_migrator::cluster::in_tree::{InTree, work_in_tree};
use kindex_migrator::cluster::reconcile::Memory;
use kindex_migrator::cluster::settings::MigrationSettings;
use kindex_migrator::in_tree::{Ended, StoredVersionsRepair};
use kindex_migrator::run::Verdict;
use kindex_migrator::wire::{StorageVersionMigration, definition};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::stage::Plane;
use super::zoo::{PACE, Zoo, encodings, versions};

const PETS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn its_success_is_believed_after_a_verification_that_finds_nothing() {
    let Some(plane) = Plane::start(&Controllers::MIGRATOR) else {
        return;
    };
    let zoo = Zoo::open(&plane, "believed.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    let mut memory = Memory::default();
    zoo.store_in("v2").await;
    zoo.reconcile(&mut memory).await;
    let _controllers = Controllers::start(&plane.server, true);

    let ended = work_in_tree(&zoo.cluster, zoo.migration().await, PACE).await;
    let believed = InTree {
        ended: Ended::Succeeded,
        verdict: Some(Verdict::Succeeded),
        put_back: StoredVersionsRepair::default(),
    };
    assert_eq!(ended.expect("it is served"), Some(believed));
    let target = "believed.example.com/v2".to_owned();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, PETS)].into());
    let status = zoo.migration().await.status.expect("a status");
    assert_eq!(status.passes, 2, "the first of ours had nothing to write");
    assert_eq!(zoo.stored_versions().await, ["v2"], "what it narrowed stays");
    zoo.reconcile(&mut memory).await;
    let v2 = zoo.hash("v2").to_string();
    assert_eq!(zoo.hashes().await, (vec![v2.clone()], v2));
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_versions_that_a_failed_run_narrowed_are_put_back() {
    let Some(plane) = Plane::start(&Controllers::MIGRATOR) else {
        return;
    };
    let zoo = Zoo::open(&plane, "narrowed.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    refuse_changes_of_pet_7(&zoo).await;
    zoo.store_in("v2").await;
    zoo.reconcile(&mut Memory::default()).await;
    let _controllers = Controllers::start(&plane.server, true);

    let ended = work_in_tree(&zoo.cluster, zoo.migration().await, PACE).await;
    let ended = ended.expect("it is served").expect("nobody else has it");
    assert!(
        matches!(&ended.ended, Ended::Failed { why } if why.contains("pet-007")),
        "{ended:?}"
    );
    assert_eq!(ended.put_back.narrowed, ["v1"]);
    assert_eq!(zoo.stored_versions().await, ["v1", "v2"]);
    assert_eq!(ended.verdict, Some(Verdict::ObjectsRefused));
    let group = "narrowed.example.com";
    let left = [(format!("{group}/v1"), 1), (format!("{group}/v2"), PETS - 1)].into();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), left);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_its_own_migrator_ends_the_migration_and_says_so() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "without.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    let before = versions(&zoo.pets("v1")).await;
    let mut memory = Memory::default();
    zoo.reconcile(&mut memory).await;
    let ended = work_in_tree(&zoo.cluster, zoo.migration().await, PACE).await;
    says(&zoo, ended.expect("saved"), "does not serve storagemigration.k8s.io").await;
    assert_eq!(versions(&zoo.pets("v1")).await, before);
    let failed = zoo.migration().await.metadata.uid;
    zoo.reconcile(&mut memory).await;
    assert_eq!(zoo.migration().await.metadata.uid, failed, "it stands");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migrator_that_takes_nothing_up_ends_the_migration() {
    let Some(plane) = Plane::start(&Controllers::MIGRATOR) else {
        return;
    };
    let zoo = Zoo::open(&plane, "idle.example.com").await;
    zoo.store_in("v1").await;
    zoo.reconcile(&mut Memory::default()).await;
    let settings = MigrationSettings {
        taken_up_within: Duration::from_secs(2),
        ..MigrationSettings::from(PACE)
    };
    let ended = work_in_tree(&zoo.cluster, zoo.migration().await, settings).await;
    says(
        &zoo,
        ended.expect("saved"),
        "has taken the migration of storagemigration.k8s.io up",
    )
    .await;
    let left = in_tree(&zoo).list(&ListParams::default()).await.expect("a list").items;
    assert!(left.is_empty(), "{left:?}");
}

/// The migration failed, and says why.
async fn says(zoo: &Zoo, ended: Option<InTree>, why: &str) {
    let verdict = ended.and_then(|ended| ended.verdict);
    assert!(
        matches!(&verdict, Some(Verdict::NoInTree { why: said }) if said.contains(why)),
        "{verdict:?}"
    );
    let status = zoo.migration().await.status.expect("a status");
    let failed = status
        .conditions
        .iter()
        .find(|condition| condition.kind == "Failed")
        .expect("it failed");
    assert_eq!(failed.reason, "NoInTreeMigrator");
    assert!(failed.message.contains(why), "{}", failed.message);
}

/// It is stopped at the same moment, as the service does.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_is_deleted_leaves_stored_versions_as_they_were() {
    let Some(plane) = Plane::start(&Controllers::MIGRATOR) else {
        return;
    };
    let zoo = Zoo::open(&plane, "left.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    zoo.store_in("v2").await;
    zoo.reconcile(&mut Memory::default()).await;
    let (settings, migration) = (MigrationSettings::from(PACE), zoo.migration().await);
    let (stop, cluster) = (settings.stop.clone(), zoo.cluster.clone());
    let name = migration.name_any();
    let working = tokio::spawn(async move { work_in_tree(&cluster, migration, settings).await });
    eventually("the cluster's migration", async || {
        in_tree(&zoo).get_opt(&name).await.is_ok_and(|found| found.is_some())
    })
    .await;
    // As Kubernetes' migrator does at the end of a run.
    let definitions: Api<DynamicObject> = Api::all_with(zoo.client.clone(), &definition::resource());
    let narrowed = json!({"status": {"storedVersions": ["v2"]}});
    let narrowed = Patch::Merge(&narrowed);
    let resource = zoo.resource().to_string();
    let patched = definitions
        .patch_status(&resource, &PatchParams::default(), &narrowed)
        .await;
    patched.expect("narrowed");
    let own: Api<StorageVersionMigration> = Api::all(zoo.client.clone());
    own.delete(&name, &DeleteParams::default()).await.expect("deleted");
    stop.cancel();
    let ended = timeout(WAIT_MAX, working)
        .await
        .expect("it ends")
        .expect("it does not panic");
    let ended = ended.expect("put back").expect("it was deleted");
    assert_eq!((ended.verdict, ended.put_back.narrowed), (None, vec!["v1".to_owned()]));
    assert_eq!(zoo.stored_versions().await, ["v1", "v2"]);
    assert!(in_tree(&zoo).get_opt(&name).await.expect("an answer").is_none());
}

/// The migrations of the cluster's own migrator.
fn in_tree(zoo: &Zoo) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "storagemigration.k8s.io".to_owned(),
        version: "v1beta1".to_owned(),
        api_version: "storagemigration.k8s.io/v1beta1".to_owned(),
        kind: "StorageVersionMigration".to_owned(),
        plural: "storageversionmigrations".to_owned(),
    };
    Api::all_with(zoo.client.clone(), &resource)
}

/// A policy as an operator may have it: this one pet cannot be written any more.
async fn refuse_changes_of_pet_7(zoo: &Zoo) {
    let group = zoo.resource().group;
    let policy = json!({"metadata": {"name": "pet-7"}, "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{"apiGroups": [group], "apiVersions": ["*"],
            "operations": ["UPDATE"], "resources": ["pets"]}]},
        "validations": [{"expression": "object.metadata.name != 'pet-007'"}],
    }});
    create(zoo, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", policy).await;
    let binding = json!({"metadata": {"name": "pet-7"}, "spec": {
        "policyName": "pet-7", "validationActions": ["Deny"],
    }});
    create(
        zoo,
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        binding,
    )
    .await;
    let pets = zoo.pets_at_home("v1");
    let change = json!({"spec": {"changed": true}});
    eventually("the policy", async || {
        let (params, patch) = (PatchParams::default(), Patch::Merge(&change));
        pets.patch("pet-007", &params, &patch).await.is_err()
    })
    .await;
}

async fn create(zoo: &Zoo, kind: &str, plural: &str, object: Value) {
    let resource = ApiResource {
        group: "admissionregistration.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "admissionregistration.k8s.io/v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(zoo.client.clone(), &resource);
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("created");
}
