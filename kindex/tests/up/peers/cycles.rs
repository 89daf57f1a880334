//! A cluster and a project that hold each other: the service of clusters finds the cycle, whether it follows projects
//! or only knows the reference of one.

use kindex_generated::kinds::cluster;
use kindex_model::kind::{Kind, Registry};
use kindex_model::reference::Service;

use super::{Compute, IDENTITY, REGISTRY, identity};
use crate::process::{kubectl_is_there, wait_for};

/// The service of projects, to one whose objects name none of them.
static HOLDERS: Service = Service {
    refers_to: &["Cluster"],
    ..IDENTITY
};
static HELD: Kind = Kind {
    group: "compute.example.com",
    version: "v1",
    references: &[],
    ..cluster::KIND
};
const HELD_ALONE: Registry = Registry {
    kinds: &[&HELD],
    services: &[&HOLDERS],
    ..REGISTRY
};

fn is_reported(registry: &'static Registry) {
    if !kubectl_is_there() {
        return;
    }
    let (run, url) = identity();
    let compute = Compute::start(url.clone());
    let _working = compute.work_with(registry);
    let held = compute.create("c", "a");
    let path = format!("/api/v1/projects/default/a/references/{held}");
    run.kubectl(&["--server", &url, "replace", "--raw", &path, "-f", "-"], "{}");
    let uid = run.kubectl(&["get", "project", "a", "-o=jsonpath={.metadata.uid}"], "");
    compute.place("c", &format!("project.michelangelo.api/{uid}"));
    compute.delete("c");
    run.kubectl(&["delete", "project", "a", "--wait=false"], "");
    let [cluster, project] = [
        "cluster.compute.example.com default/c",
        "project.michelangelo.api default/a",
    ];
    let path = format!("waits for itself: {cluster} is held by {project} is held by {cluster}");
    wait_for("the path", || compute.has_event("DeletionCycle", &path));
}

#[test]
fn a_cycle_over_a_service_whose_objects_are_followed_is_reported_with_its_path() {
    is_reported(&REGISTRY);
}

#[test]
fn a_cycle_over_a_service_that_only_refers_to_this_one_is_reported_with_its_path() {
    is_reported(&HELD_ALONE);
}
