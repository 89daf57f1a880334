//! A graph of objects at the three services: until it is held together, and in which order it went.

use std::collections::BTreeMap;

use kindex_harness::nats::Nats;
use kindex_harness::require::require;
use serde_json::Value;

use super::graph::{Graph, Object};
use super::log::EventLog;
use super::service::{NAMES, Service};
use crate::process::wait_for;

/// The server over which services hear of each other, where they do not ask each other's API servers.
pub(super) fn nats(events: &str) -> Option<Nats> {
    (events == "nats").then(|| {
        assert!(require("nats", Nats::installed()), "the walk uses NATS");
        Nats::start()
    })
}

/// The service of an object.
pub(super) fn of<'s>(services: [&'s Service; 3], object: &Object) -> &'s Service {
    named(services, object.service)
}

fn named<'s>(services: [&'s Service; 3], name: &str) -> &'s Service {
    let found = services.into_iter().find(|service| service.name == name);
    found.expect("one of the three")
}

/// Creates all objects. They are held by those that name them then, and have the finalizers of their service.
pub(super) fn apply(services: [&Service; 3], graph: &Graph) {
    for service in services {
        service
            .run
            .kubectl(&["apply", "-f", "-"], &graph.manifest(service.name));
    }
    let uids = graph
        .objects()
        .map(|object| (object.name, of(services, object).uid(object)));
    let uids: BTreeMap<_, _> = uids.collect();
    for target in graph.objects() {
        let holders = graph.references().filter(|(_, held)| *held == target);
        let references =
            holders.map(|(holder, _)| format!("{}.{}/{}", holder.singular, holder.group(), uids[holder.name]));
        let references: Vec<_> = references.collect();
        wait_for(&format!("the references {references:?} on {target}"), || {
            let finalizers = of(services, target).finalizers(target);
            let own = ["/kindex", "/deletion"].iter().all(|own| finalizers.contains(own));
            own && references.iter().all(|reference| finalizers.contains(reference))
        });
    }
}

pub(super) fn until_verified(services: [&Service; 3]) {
    let [identity, region, compute] = NAMES.map(|name| named(services, name));
    wait_for("every reference to be verified", || {
        region.is_verified(identity) && compute.is_verified(region)
    });
}

/// What the three have beside a graph that is not there: nobody may change anything of it that a deletion changes.
pub(super) fn untouched(services: [&Service; 3]) -> [Value; 3] {
    until_verified(services);
    NAMES.map(|name| named(services, name).objects())
}

/// The log of a graph, from NATS where there is one.
pub(super) fn follow(services: [&Service; 3], graph: &Graph, nats: Option<&Nats>) -> EventLog {
    EventLog::follow(graph, |service| match nats {
        Some(nats) => ("--nats", nats.address()),
        None => ("--url", named(services, service).url.clone()),
    })
}

/// Events of several services, and of several kinds, may arrive in any order, and a process may be killed between
/// releasing a target and its own object's end. What is certain is that a holder is deleted because of one of its
/// targets, and that a target is erased, or has nothing left to do but to release others, after that was true of its
/// holder. All times are of one machine's clock.
pub(super) fn assert_order(services: [&Service; 3], log: &EventLog, graph: &Graph) {
    for object in graph.objects() {
        assert!(log.is_in_order(object), "{object}: {:?}", log.of(object));
    }
    let last = graph
        .objects()
        .map(|object| (object.name, of(services, object).last(object)));
    let last: BTreeMap<_, _> = last.collect();
    for holder in graph.objects() {
        let targets = graph.references().filter(|(naming, _)| *naming == holder);
        let causes = targets.map(|(_, target)| log.deleted_at(target));
        if let Some(cause) = causes.min() {
            let effect = log.deleted_at(holder);
            assert!(cause <= effect, "its first target at {cause}, {holder} at {effect}");
        }
    }
    for (holder, target) in graph.references() {
        let through = last[holder.name].finalizing_since(holder).expect("it refers to others");
        let erased = of(services, target).erased_at(target);
        assert!(through <= erased, "{holder} at {through}, {target} at {erased}");
        if let Some(then) = last[target.name].finalizing_since(target) {
            assert!(through <= then, "{holder} at {through}, {target} at {then}");
        }
        // Of one cluster, versions say what times with whole seconds do not.
        if holder.service == target.service {
            let [first, then] = [holder, target].map(|object| last[object.name].version());
            assert!(first < then, "{holder} at version {first}, {target} at version {then}");
        }
    }
}
