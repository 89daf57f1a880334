//! A database that goes away while there is nothing to store: a MariaDB that the test kills.

use std::sync::Arc;

use kindex_generated::kinds::model;
use kindex_harness::mariadb::MariaDb;
use kindex_harness::wait::eventually;
use kindex_model::kind::{Kind, Registry};
use kindex_runtime::settings::Settings;
use kindex_runtime::{Ingester, Sharding};
use kindex_store::Address;
use kindex_tests::databases::mariadb::available;
use kindex_tests::databases::patient;

use super::fakes::FakeCluster;

/// Nobody asks the database for anything, and whether it is there is looked at all the same.
#[tokio::test]
async fn an_outage_is_noticed_while_nothing_changes() {
    static KINDS: &[&Kind] = &[&model::KIND];
    if !available() {
        return;
    }
    let mut server = MariaDb::start(&["--innodb-flush-log-at-trx-commit=0"]);
    let address: Address = format!("mysql://root@127.0.0.1:{}/k", server.port)
        .parse()
        .expect("an address");
    let registry = Registry {
        kinds: KINDS,
        ..kindex_generated::registry()
    };
    let store = kindex_store::open(&address, registry, &patient()).expect("an address");
    let cluster = Arc::new(FakeCluster::new(KINDS));
    let ingester = Ingester::start(registry, cluster, store.clone(), Sharding::Alone, |_| {
        Settings::default()
    });
    eventually("the end of the first list is saved", async || {
        let saved = store.checkpoint(&model::KIND).await;
        saved.is_ok_and(|saved| saved.is_some())
    })
    .await;
    let outage = store.outage();
    assert_eq!(outage.lasts(), None);
    server.kill();
    eventually("the outage", async || outage.lasts().is_some()).await;
    server.resume();
    eventually("its end", async || outage.lasts().is_none()).await;
    ingester.shutdown().await;
    store.close().await;
}
