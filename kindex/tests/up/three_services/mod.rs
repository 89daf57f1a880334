//! The services of examples/deletion-graph as three processes, each with a cluster and a database of its own. They hear
//! of each other from their APIs, by events or by lists and watches, or over NATS. A project is deleted, and takes
//! everything along. Over each transport, processes are killed in every state in which a deletion can stand still. The
//! order is read from the event logs. Takes minutes to build, and runs where `KINDEX_REQUIRE` names `walk`.

mod front;
mod graph;

mod log;
mod service;

mod stage;

mod kills;

mod encrypted;
mod kubernetes;
mod running;
mod still;
mod verified;

use crate::events::{Follower, Printed, cut_at_every_byte};
use crate::process::{kubectl_is_there, wait_for};
use crate::text_of;
use crate::workspace::walk_is_required;
use graph::{LEAVING_PROJECT, NETWORK, OTHER_PROJECT, Object, PROJECT, SERVER_GROUP};
use service::Service;

/// Whether the programs are built, and all is there that they need.
fn can_run() -> bool {
    let is_required = walk_is_required();
    assert!(!is_required || kubectl_is_there(), "the walk uses kubectl");
    is_required
}

/// Archived clusters that name objects of the region: one is deleted and releases them, the other goes with the
/// network.
#[test]
fn what_is_archived_goes_with_the_target_of_another_service() {
    if !can_run() {
        return;
    }
    let [identity, region, mut compute] = Service::start_all("api", None);
    for service in [&identity, &region, &compute] {
        service.apply();
    }
    let second = "{apiVersion: compute.example.com/v1, kind: Cluster, metadata: {name: second, namespace: default}, \
                  spec: {network: blue, serverGroup: apart}}";
    compute.run.kubectl(&["apply", "-f", "-"], second);
    let uid = |name: &str| {
        compute
            .run
            .kubectl(&["get", "cluster", name, "-o=jsonpath={.metadata.uid}"], "")
    };
    let references = ["prod", "second"].map(|name| format!("cluster.compute.example.com/{}", uid(name)));
    let [prod, second] = &references;
    let has_reference = |object: &Object, reference: &str| region.finalizers(object).contains(reference);
    wait_for("the references", || {
        let all = |reference: &String| has_reference(&NETWORK, reference) && has_reference(&SERVER_GROUP, reference);
        references.iter().all(all)
    });
    let immutable = "compute.example.com/immutable=true";
    compute.run.kubectl(&["annotate", "clusters", "--all", immutable], "");
    wait_for("the archive", || {
        compute.run.kubectl(&["get", "clusters", "-o=name"], "").is_empty()
    });
    let all = compute.run.get(&["clusters"]);
    assert!(all.contains("prod") && all.contains("second"), "{all}");

    compute
        .run
        .kubectl(&["--server", &compute.url, "delete", "cluster", "second"], "");
    wait_for("its references to be released", || {
        !has_reference(&NETWORK, second) && !has_reference(&SERVER_GROUP, second)
    });
    assert!(has_reference(&NETWORK, prod) && has_reference(&SERVER_GROUP, prod));

    // The compute service learns of the deletion once it is back.
    compute.kill();
    region.delete(&NETWORK);
    until("the network to wait", &region, "network", "Deleting");
    compute.restart();
    until("the archived cluster to go", &compute, "cluster", "Erased");
    until("the network to go", &region, "network", "Erased");
    assert!(!has_reference(&SERVER_GROUP, prod), "it holds nothing any more");
}

fn until(what: &str, service: &Service, kind: &str, event: &str) {
    wait_for(what, || service.event(kind) == event);
}

#[test]
fn a_follower_of_networks_whose_answer_is_cut_at_every_byte_of_a_tombstone_does_not_lack_it() {
    if !can_run() {
        return;
    }
    let services = Service::start_all("api", None);
    services.iter().for_each(Service::apply);
    let [_, region, _] = &services;
    let topic = "networks.region.example.com";
    let whole = Follower::begin_with(topic, &["--url", &region.url], Printed::default());
    whole.sees(NETWORK.name, false);
    let position = whole.printed.last_position();
    region.delete(&NETWORK);
    whole.sees(NETWORK.name, true);
    let server = region.run.api().expect("it serves");
    cut_at_every_byte(server, topic, &position, NETWORK.name);
}

/// Neither by the command nor by a plain change of the field it gets to a project that is being deleted.
#[test]
fn a_cloud_identity_moves_to_another_project_which_stays() {
    if !can_run() {
        return;
    }
    let [identity, region, _compute] = Service::start_all("api", None);
    for service in [&identity, &region] {
        service.apply();
    }
    for project in [&OTHER_PROJECT, &LEAVING_PROJECT] {
        let project = format!(
            "{{apiVersion: identity.example.com/v1, kind: Project, metadata: {{name: {}, namespace: default}}, \
             spec: {{}}}}",
            project.name
        );
        identity.run.kubectl(&["apply", "-f", "-"], &project);
    }
    let has_reference = |project| {
        identity
            .finalizers(project)
            .contains("cloudidentity.region.example.com/")
    };
    wait_for("the reference", || has_reference(&PROJECT));
    let service = format!("identity.example.com={}", identity.url);
    let moved = |to: &str| {
        let words = ["move", "cloudidentity/openstack", "--to", to, "--service", &service];
        region.run.command(&words)
    };
    let done = moved("project/b");
    assert_eq!(
        text_of(&done.stdout),
        "cloudidentity/default/openstack: spec.project names project/default/b instead of project/default/a\n",
        "{}",
        text_of(&done.stderr)
    );
    assert!(done.status.success() && has_reference(&OTHER_PROJECT));
    wait_for("the former project to be free", || !has_reference(&PROJECT));

    identity.begin_cleanup(&LEAVING_PROJECT);
    identity.delete(&LEAVING_PROJECT);
    let refused = moved("project.identity.example.com/c");
    assert_eq!(refused.status.code(), Some(1));
    let why = "spec.project would name project/default/c, which is being deleted";
    assert!(text_of(&refused.stderr).contains(why), "{}", text_of(&refused.stderr));
    let patch = r#"{"spec": {"project": "c"}}"#;
    let patch = ["patch", "cloudidentity", "openstack", "--type=merge", "-p", patch];
    let server = ["--server", region.url.as_str()];
    let said = region.run.refused(&[&server[..], &patch[..]].concat(), "");
    assert!(said.contains(why), "{said}");
    assert!(has_reference(&OTHER_PROJECT) && !has_reference(&LEAVING_PROJECT));
    let named = region.run.kubectl(
        &["get", "cloudidentity", "openstack", "-o=jsonpath={.spec.project}"],
        "",
    );
    assert_eq!(named, "b");
}
