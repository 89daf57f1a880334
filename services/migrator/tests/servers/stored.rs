//! What etcd holds after a migration, for each sort of kind.

use jiff::Timestamp;
use kindex_harness::wait::eventually;
use kindex_migrator::cluster::reconcile::Memory;
use kindex_migrator::cluster::work::work;
use kindex_migrator::discovery::Discovered;
use kindex_migrator::run::Verdict;
use kindex_migrator::trigger::Finding;
use kindex_migrator::wire::StorageVersionMigration;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::stage::Plane;
use super::zoo::{PACE, Zoo, encodings, force, versions};

const PETS: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn every_stored_object_has_the_target_version_and_a_verification_writes_nothing() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "stored.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    let mut memory = Memory::default();
    for version in ["v2", "v1"] {
        zoo.store_in(version).await;
        zoo.reconcile(&mut memory).await;
        assert_eq!(zoo.migrate().await, Verdict::Succeeded);
        let stored = plane.etcd.stored(&zoo.prefix());
        let target = format!("stored.example.com/{version}");
        assert_eq!(encodings(&stored), [(target, PETS)].into());

        let before = versions(&zoo.pets("v2")).await;
        let again = force(&zoo.client, &zoo.resource()).await;
        let verdict = work(&zoo.cluster, again, PACE).await;
        assert_eq!(verdict.expect("saved"), Some(Verdict::Succeeded));
        assert_eq!(versions(&zoo.pets("v2")).await, before);
        assert_eq!(plane.etcd.stored(&zoo.prefix()), stored);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_etcd_forgot_goes_on_from_the_same_key() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "forgotten.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    zoo.store_in("v2").await;

    let page = ListParams::default().limit(50);
    let first = zoo.pets("v2").list_metadata(&page).await.expect("a page");
    let token = first.metadata.continue_.expect("there is more");
    let migration = half_way(&zoo, &token).await;
    zoo.create(PETS..PETS + 1).await;
    plane.etcd.compact();
    let next = zoo.pets("v2").list_metadata(&page.continue_token(&token)).await;
    assert!(
        matches!(&next, Err(kube::Error::Api(status)) if status.code == 410),
        "{next:?}"
    );

    let verdict = work(&zoo.cluster, migration, PACE).await;
    assert_eq!(verdict.expect("saved"), Some(Verdict::Succeeded));
    // The pass that went on from the token, the one that migrated what lay before it, and the one that verified.
    assert_eq!(zoo.migration().await.status.expect("a status").passes, 3);
    let target = "forgotten.example.com/v2".to_owned();
    assert_eq!(
        encodings(&plane.etcd.stored(&zoo.prefix())),
        [(target, PETS + 1)].into()
    );
}

/// A migration to v2 whose migrator died in its first pass.
async fn half_way(zoo: &Zoo, token: &str) -> StorageVersionMigration {
    let mut migration = force(&zoo.client, &zoo.resource()).await;
    let status = migration.status.get_or_insert_default();
    status.target_storage_version_hash = zoo.hash("v2").to_string();
    status.continue_token = Some(token.to_owned());
    status.set_condition("Running", "Rewriting", String::new(), Timestamp::now());
    let api: Api<StorageVersionMigration> = Api::all(zoo.client.clone());
    let name = migration.name_any();
    let replaced = api.replace_status(&name, &PostParams::default(), &migration).await;
    replaced.expect("replaced")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_scoped_kind_is_migrated() {
    let Some(plane) = Plane::shared() else { return };
    let mut zoo = Zoo::open(plane, "scoped.example.com").await;
    zoo.scope = "Cluster";
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    zoo.store_in("v2").await;
    zoo.reconcile(&mut Memory::default()).await;
    assert_eq!(zoo.migrate().await, Verdict::Succeeded);
    let target = "scoped.example.com/v2".to_owned();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, PETS)].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_without_objects_and_one_with_one_version_succeed() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "single.example.com").await;
    zoo.define(&zoo.definition(&["v1"], "v1")).await;
    zoo.shows(&zoo.hash("v1")).await;
    for pets in [0..0, 0..3] {
        zoo.create(pets).await;
        let mut memory = Memory::default();
        zoo.reconcile(&mut memory).await;
        assert_eq!(zoo.migrate().await, Verdict::Succeeded);
        zoo.reconcile(&mut memory).await;
        let hash = zoo.hash("v1").to_string();
        assert_eq!(zoo.hashes().await, (vec![hash.clone()], hash));
        assert_eq!(zoo.stored_versions().await, ["v1"]);
        zoo.forget().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_come_to_a_stored_version_that_is_not_served() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "unserved.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    let mut definition = zoo.definition(&["v1", "v2"], "v2");
    definition["spec"]["versions"][1]["served"] = false.into();
    zoo.define(&definition).await;
    eventually("an end of the hash", async || {
        zoo.discovered().await == Discovered::NoHash
    })
    .await;
    let mut memory = Memory::default();
    assert_eq!(zoo.reconcile(&mut memory).await, Some(Finding::NoHash));
    assert_eq!(zoo.migrate().await, Verdict::Succeeded);
    zoo.reconcile(&mut memory).await;
    let v2 = zoo.hash("v2").to_string();
    assert_eq!(zoo.hashes().await, (vec![v2.clone()], v2));
    let target = "unserved.example.com/v2".to_owned();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, PETS)].into());
}

/// As they are where an old API server wrote them, or somebody cleared them: an apply would note a manager for all that
/// was there before.
#[tokio::test(flavor = "multi_thread")]
async fn objects_without_managers_are_migrated_and_get_none() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "unmanaged.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..3).await;
    let (api, cleared) = (
        zoo.pets_at_home("v2"),
        Patch::Merge(json!({"metadata": {"managedFields": [{}]}})),
    );
    for name in versions(&zoo.pets("v2")).await.keys() {
        let patched = api.patch(name, &PatchParams::default(), &cleared).await;
        patched.expect("patched");
    }
    zoo.store_in("v2").await;
    zoo.reconcile(&mut Memory::default()).await;
    assert_eq!(zoo.migrate().await, Verdict::Succeeded);
    let target = "unmanaged.example.com/v2".to_owned();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, 3)].into());
    let pets = zoo.pets("v2").list(&ListParams::default()).await.expect("a list");
    assert!(pets.items.iter().all(|pet| pet.managed_fields().is_empty()), "{pets:?}");
}
