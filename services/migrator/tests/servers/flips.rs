//! The storage version changes while nobody looks, or while a migration runs.

use kindex_harness::wait::eventually;
use kindex_migrator::cluster::Cluster;
use kindex_migrator::cluster::reconcile::Memory;
use kindex_migrator::cluster::settings::Pace;
use kindex_migrator::cluster::work::work;
use kindex_migrator::run::Verdict;
use kindex_migrator::run::outdated::Outdated;
use tokio::sync::watch;

use super::gate::held_after;
use super::stage::Plane;
use super::zoo::{Zoo, encodings};

const PETS: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn two_flips_between_two_rounds_are_seen_and_everything_is_migrated_again() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "twice.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..3).await;
    let mut memory = Memory::default();
    zoo.reconcile(&mut memory).await;
    assert_eq!(zoo.migrate().await, Verdict::Succeeded);
    zoo.reconcile(&mut memory).await;
    let v1 = zoo.hash("v1").to_string();
    assert_eq!(zoo.hashes().await, (vec![v1.clone()], v1.clone()));

    zoo.store_in("v2").await;
    zoo.create(3..PETS).await;
    zoo.store_in("v1").await;
    let mixed = encodings(&plane.etcd.stored(&zoo.prefix()));
    assert_eq!(mixed.len(), 2, "{mixed:?}");
    zoo.reconcile(&mut memory).await;
    let both = vec![v1.clone(), zoo.hash("v2").to_string()];
    assert_eq!(zoo.hashes().await, (both, v1.clone()));
    assert_eq!(zoo.migrate().await, Verdict::Succeeded);
    zoo.reconcile(&mut memory).await;
    assert_eq!(zoo.hashes().await, (vec![v1.clone()], v1));
    let target = "twice.example.com/v1".to_owned();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, PETS)].into());
}

/// How many flips follow each other: `KINDEX_FAULTS=full` for a release.
fn flips() -> usize {
    match std::env::var("KINDEX_FAULTS").as_deref() {
        Ok("full") => 100,
        _ => 6,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flip_that_is_migrated_at_once_leaves_nothing_behind() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "hasty.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..3).await;
    let mut memory = Memory::default();
    for flip in 0..flips() {
        let version = if flip % 2 == 0 { "v2" } else { "v1" };
        zoo.define(&zoo.definition(&["v1", "v2"], version)).await;
        let hash = zoo.hash(version).to_string();
        eventually("a state that knows the flip", async || {
            zoo.reconcile(&mut memory).await;
            zoo.hashes().await.1 == hash
        })
        .await;
        assert_eq!(zoo.migrate().await, Verdict::Succeeded);
        let target = format!("hasty.example.com/{version}");
        assert_eq!(
            encodings(&plane.etcd.stored(&zoo.prefix())),
            [(target, 3)].into(),
            "flip {flip}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_downgrade_in_mid_run_ends_it_and_the_next_one_migrates_back() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "downgraded.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    let mut memory = Memory::default();
    zoo.store_in("v2").await;
    zoo.reconcile(&mut memory).await;
    let verdict = interrupted(&zoo, async || zoo.store_in("v1").await).await;
    assert_eq!(verdict, Verdict::Outdated(Outdated::Redefined));
    let mixed = encodings(&plane.etcd.stored(&zoo.prefix()));
    assert_eq!(mixed.len(), 2, "it stopped between two pages: {mixed:?}");
    assert_eq!(zoo.stored_versions().await, ["v1", "v2"]);

    zoo.reconcile(&mut memory).await;
    assert_eq!(zoo.migrate().await, Verdict::Succeeded);
    let target = "downgraded.example.com/v1".to_owned();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, PETS)].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_is_created_again_in_mid_run_ends_it() {
    let Some(plane) = Plane::shared() else { return };
    let zoo = Zoo::open(plane, "recreated.example.com").await;
    zoo.store_in("v1").await;
    zoo.create(0..PETS).await;
    let mut memory = Memory::default();
    zoo.store_in("v2").await;
    zoo.reconcile(&mut memory).await;
    let again = async || {
        zoo.abolish().await;
        zoo.store_in("v1").await;
        zoo.create(0..PETS).await;
        zoo.store_in("v2").await;
    };
    let verdict = interrupted(&zoo, again).await;
    assert_eq!(verdict, Verdict::Outdated(Outdated::Recreated));
    assert_eq!(zoo.stored_versions().await, ["v1", "v2"]);

    zoo.reconcile(&mut memory).await;
    let v2 = zoo.hash("v2").to_string();
    assert_eq!(zoo.hashes().await, (vec!["Unknown".to_owned()], v2.clone()));
    assert_eq!(zoo.migrate().await, Verdict::Succeeded);
    zoo.reconcile(&mut memory).await;
    assert_eq!(zoo.hashes().await, (vec![v2.clone()], v2));
    let target = "recreated.example.com/v2".to_owned();
    assert_eq!(encodings(&plane.etcd.stored(&zoo.prefix())), [(target, PETS)].into());
}

/// Carries the only migration on, and holds it after its first page until something else is done.
async fn interrupted(zoo: &Zoo, something: impl AsyncFn()) -> Verdict {
    let (go_on, goes_on) = watch::channel(false);
    let cluster = Cluster::new(held_after(1, &zoo.client, goes_on), Vec::new());
    let pace = Pace { page: 2, workers: 1 };
    let working = tokio::spawn({
        let migration = zoo.migration().await;
        async move { work(&cluster, migration, pace).await }
    });
    eventually("the first page", async || {
        let status = zoo.migration().await.status;
        status.is_some_and(|status| status.continue_token.is_some())
    })
    .await;
    assert!(!working.is_finished(), "it is held before its end");
    something().await;
    go_on.send_replace(true);
    let verdict = working.await.expect("it does not panic");
    verdict.expect("saved").expect("nobody else has it")
}
