//! Each of the services on a kube-apiserver of its own with a garbage collector, which follows the owner references of
//! the same objects. `kindex deletion` is a process of its own there.

use serde_json::json;

use super::graph::{CLOUD_IDENTITY, CLUSTER, NETWORK, OUT_OF_REACH, Object, PROJECT, SAMPLES, SERVER_GROUP};
use super::kills::Kills;
use super::service::Service;
use super::{can_run, stage};
use crate::process::wait_for;
use crate::site::Site;

#[test]
fn on_three_control_planes_a_project_goes_in_order_beside_their_garbage_collectors() {
    if !can_run() {
        return;
    }
    let sites = sites();
    let mut services = Service::start_all_on(&sites);
    let all = services.each_ref();
    stage::apply(all, &OUT_OF_REACH);
    let others = stage::untouched(all);
    stage::apply(all, &SAMPLES);
    stage::until_verified(all);
    let [_, region, compute] = all;
    for owned in [&NETWORK, &SERVER_GROUP] {
        own(region, &CLOUD_IDENTITY, owned);
    }
    for (service, owner) in [(region, &NETWORK), (compute, &CLUSTER)] {
        settings_of(service, owner);
    }
    let log = stage::follow(all, &SAMPLES, None);
    compute.begin_cleanup(&CLUSTER);
    stage::of(all, &PROJECT).delete(&PROJECT);
    // Deleters that were killed are followed by others once their leases are over.
    let kills = Kills::at_changes(&mut services, &log, &SAMPLES, &CLUSTER, 4);

    let all = services.each_ref();
    kills.assert_met(all, &SAMPLES);
    stage::assert_order(all, &log, &SAMPLES);
    for owner in [&NETWORK, &CLUSTER] {
        until_collected(stage::of(all, owner), owner);
    }
    assert_eq!(stage::untouched(all), others, "nothing else goes");
}

/// Three control planes, begun at the same time.
fn sites() -> [Site; 3] {
    let start = || Site::real().expect("the walk uses control planes");
    std::thread::scope(|scope| {
        let started = [(); 3].map(|()| scope.spawn(start));
        started.map(|site| site.join().expect("it starts"))
    })
}

/// Makes one object the owner of another of its service, for which an owner waits that is deleted in the foreground.
fn own(service: &Service, owner: &Object, owned: &Object) {
    let owners = json!({"metadata": {"ownerReferences": [owner.as_owner(&service.uid(owner))]}}).to_string();
    let patch = ["patch", owned.singular, owned.name, "--type=merge", "-p", &owners];
    service.run.kubectl(&patch, "");
}

/// What a controller has made for an object.
fn settings_of(service: &Service, owner: &Object) {
    let owners = [owner.as_owner(&service.uid(owner))];
    let settings = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": owner.name, "namespace": "default", "ownerReferences": owners},
    });
    service.run.kubectl(&["create", "-f", "-"], &settings.to_string());
}

/// Until the garbage collector has found that the owner is gone.
fn until_collected(service: &Service, owner: &Object) {
    wait_for("the garbage collector", || {
        let settings = ["get", "configmap", owner.name, "--ignore-not-found", "-o=name"];
        service.run.kubectl(&settings, "").is_empty()
    });
}
