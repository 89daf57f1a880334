//! `kindex migrator --resource all`: every resource that can be listed and patched, those of Kubernetes among them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use kindex_harness::wait::eventually;
use kindex_migrator::cluster::discover::discover;
use kindex_migrator::wire::{GroupResource, StorageState};
use kube::api::{Api, ListParams};

use super::stage::Stage;

const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/tls/first.crt");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/tls/first.key");

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_discovery_lists_is_migrated() {
    let Some(stage) = Stage::start().await else { return };
    stage.store_trials_in("v2").await;
    stage.create_trials(10).await;
    let mut command = stage.command(&["migrator", "--resource", "all", "--settle", "0"]);
    command.args([
        "--lease-namespace",
        "default",
        "--tls-cert",
        CERTIFICATE,
        "--tls-key",
        KEY,
    ]);
    command.args(["--listen", "127.0.0.1:0", "--health-addr", "127.0.0.1:0"]);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    let _migrator = quiet.spawn().expect("started");

    let served = discover(&stage.cluster, &BTreeSet::new()).await.served;
    let served: BTreeSet<GroupResource> = served.into_keys().collect();
    for (group, resource) in [("", "secrets"), ("apps", "deployments"), ("traps.dev", "trials")] {
        let (group, resource) = (group.to_owned(), resource.to_owned());
        let wanted = GroupResource { group, resource };
        assert!(served.contains(&wanted), "{wanted} is not in {served:?}");
    }
    let states: Api<StorageState> = Api::all(stage.client.clone());
    let mut hashes = BTreeMap::new();
    eventually("one hash for every resource", async || {
        let listed = states.list(&ListParams::default()).await.expect("a list").items;
        let known = listed.into_iter().map(|state| {
            let status = state.status.unwrap_or_default();
            let current = status.current_storage_version_hash;
            let is_verified = !current.is_empty() && status.persisted_storage_version_hashes == [current];
            (state.spec.resource, is_verified)
        });
        hashes = known.collect();
        served.iter().all(|resource| hashes.get(resource) == Some(&true))
    })
    .await;
    let more: Vec<_> = hashes.keys().filter(|resource| !served.contains(*resource)).collect();
    assert!(more.is_empty(), "{more:?}");
}
