//! Several who write to different nodes of a Galera cluster. A lock is of one node there, and a commit is seen on the
//! others a moment later: what two transactions have written is compared at their commits.

use kindex_harness::galera::Galera;
use kindex_harness::require::require;
use kindex_model::kind::Registry;
use kindex_store::{Address, MySqlFields};
use sqlx::mysql::MySqlConnectOptions;
use tokio::sync::{Mutex, MutexGuard};

use super::archived_holders::no_row_outlasts_its_holder;
use super::backend::{Backend, mysql_rows};
use super::cut_off::nothing_stays;
use super::outbox::EVENTFUL;
use super::outbox_histories::{no_position_is_skipped, nothing_is_missed};
use super::reference_races::held_open::whoever_is_second_sees_the_first;
use super::reference_races::{nothing_waits, one_of_both_wins, one_takes_the_object_along};
use super::rewound_meanwhile::no_lost_version_comes_back;
use super::sql_only::{all_are_numbered, one_creates_each_name, one_replaces_each_version};
use super::widget::REGISTRY;

const ROUNDS: u32 = 20;

/// A cluster, the only one at a time: nodes without a processor pass for dead. `None` where Galera is absent and not
/// required.
async fn cluster(nodes: usize) -> Option<(Galera, MutexGuard<'static, ()>)> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    let alone = ALONE.lock().await;
    require("galera", Galera::installed()).then(|| (Galera::start(nodes, &["--innodb-buffer-pool-size=32M"]), alone))
}

/// A database, as the first nodes have it.
async fn nodes<const N: usize>(galera: &Galera, database: &str, registry: Registry) -> [Backend; N] {
    let mut nodes = Vec::new();
    for node in 0..N {
        let address = Address::mysql(&MySqlFields {
            host: "127.0.0.1".to_owned(),
            port: galera.port(node),
            user: "root".to_owned(),
            database: database.to_owned(),
            ..MySqlFields::default()
        });
        nodes.push(Backend::node(address, registry).await);
    }
    <[Backend; N]>::try_from(nodes).unwrap_or_else(|_| unreachable!("there are as many as asked for"))
}

#[tokio::test]
async fn references_and_deletions_exclude_each_other_on_two_nodes() {
    let Some((galera, _alone)) = cluster(2).await else {
        return;
    };
    let [one, two] = nodes::<2>(&galera, "places", REGISTRY).await;
    one_of_both_wins(&one, &two, ROUNDS).await;
    let [one, two] = nodes::<2>(&galera, "releases", REGISTRY).await;
    one_takes_the_object_along(&one, &two, ROUNDS).await;
    let [one, two] = nodes::<2>(&galera, "both", REGISTRY).await;
    nothing_waits(&one, &two, ROUNDS).await;
    let [one, two] = nodes::<2>(&galera, "open", REGISTRY).await;
    whoever_is_second_sees_the_first(&one, &two).await;
    let [one, two] = nodes::<2>(&galera, "holders", REGISTRY).await;
    no_row_outlasts_its_holder(&one, &two, ROUNDS).await;
}

#[tokio::test]
async fn of_many_that_write_one_sql_only_object_on_two_nodes_one_is_done() {
    let Some((galera, _alone)) = cluster(2).await else {
        return;
    };
    let [one, two] = nodes::<2>(&galera, "names", REGISTRY).await;
    one_creates_each_name(&one, &two, ROUNDS).await;
    let [one, two] = nodes::<2>(&galera, "versions", REGISTRY).await;
    one_replaces_each_version(&one, &two, ROUNDS).await;
    let [one, two] = nodes::<2>(&galera, "numbers", REGISTRY).await;
    all_are_numbered(&one, &two).await;
}

#[tokio::test]
async fn a_write_on_one_node_beside_a_rewind_on_another_brings_no_lost_version_back() {
    let Some((galera, _alone)) = cluster(2).await else {
        return;
    };
    let [one, two] = nodes::<2>(&galera, "rewinds", REGISTRY).await;
    no_lost_version_comes_back(&one, &two, ROUNDS).await;
}

#[tokio::test]
async fn nothing_of_a_call_that_is_cut_off_stays_on_its_connection_to_a_node() {
    let Some((galera, _alone)) = cluster(1).await else {
        return;
    };
    let [one] = nodes::<1>(&galera, "cuts", REGISTRY).await;
    nothing_stays(&one).await;
}

#[tokio::test]
async fn who_follows_the_outbox_on_any_node_misses_nothing_of_two_that_write() {
    let Some((galera, _alone)) = cluster(3).await else {
        return;
    };
    let [one, two, three] = nodes::<3>(&galera, "positions", EVENTFUL).await;
    no_position_is_skipped(&[&one, &two], &[&[&one], &[&two], &[&three]]).await;
    let [one, two, three] = nodes::<3>(&galera, "changes", EVENTFUL).await;
    nothing_is_missed(&[&one, &two], &[&[&one], &[&two], &[&three]]).await;

    // Where nodes wait for the others' commits before they answer, a reader may go from one to another.
    for node in 0..3 {
        let options = MySqlConnectOptions::new().host("127.0.0.1").port(galera.port(node));
        mysql_rows(&options.username("root"), "SET GLOBAL wsrep_sync_wait = 1").await;
    }
    let [one, two, three] = nodes::<3>(&galera, "around", EVENTFUL).await;
    no_position_is_skipped(&[&one, &two], &[&[&one, &two, &three]]).await;
}
