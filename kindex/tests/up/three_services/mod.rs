//! The services of examples/deletion-graph as three processes, each with a cluster and a database of its own. They hear
//! of each other from their APIs, by events or by lists and watches, or over NATS. A project is deleted, and takes
//! everything along. Over each transport, processes are killed in every state in which a deletion can stand still. The
//! order is read from the event logs. Takes minutes to build, and runs where `KINDEX_REQUIRE` names `walk`.

mod graph;
mod log;
mod service;

use kindex_harness::nats::Nats;
use kindex_harness::require::require;

use crate::process::{kubectl_is_there, wait_for};
use crate::text_of;
use crate::workspace::walk_is_required;
use graph::{
    CLOUD_IDENTITY, CLUSTER, LEAVING_PROJECT, MANIFESTS, NETWORK, OBJECTS, OTHER_CLOUD_IDENTITY, OTHER_CLUSTER,
    OTHER_PROJECT, Object, PROJECT, REFERENCES, SERVER_GROUP,
};
use log::EventLog;
use service::Service;

#[test]
fn a_project_of_three_services_goes_in_order_whichever_of_them_is_killed_between_two_steps() {
    walk("api");
}

#[test]
fn it_does_so_too_where_services_hear_of_each_other_by_lists_and_watches() {
    walk("watch");
}

#[test]
fn it_does_so_too_where_services_hear_of_each_other_over_nats() {
    walk("nats");
}

/// Deletes the project. Each step ends what stood still before, kills processes in the next state, and starts them
/// again.
fn walk(events: &str) {
    if !walk_is_required() {
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
    let mut walk = Walk::begin(events);
    walk.the_project_is_deleted();
    walk.the_region_follows();
    walk.a_cluster_drains();
    walk.the_other_cluster_releases_its_targets();
    walk.the_networks_drain();
    walk.a_cloud_identity_drains();
    walk.the_other_cloud_identity_releases_its_target();
    walk.the_project_drains();
    walk.assert_order();
}

/// One deletion of the project.
struct Walk {
    identity: Service,
    region: Service,
    compute: Service,
    nats: Option<Nats>,
    log: EventLog,
}

impl Walk {
    /// Until all objects are there and held by those that name them, and somebody is about to clean up after each of
    /// them, without which it would not stand still. The log is read from NATS where there is one.
    fn begin(events: &str) -> Self {
        let nats = (events == "nats").then(|| {
            assert!(require("nats", Nats::installed()), "the walk uses NATS");
            Nats::start()
        });
        let address = nats.as_ref().map(Nats::address);
        let [identity, region, compute] = Service::start_all(events, address.as_deref());
        let services = [&identity, &region, &compute];
        let service = |object: &Object| service_of(services, object);
        for service in services {
            service.apply();
        }
        for (object, manifest) in MANIFESTS {
            service(object).run.kubectl(&["apply", "-f", "-"], manifest);
        }
        for (holder, target) in REFERENCES {
            let reference = format!("{}.{}/{}", holder.kind, holder.group(), service(holder).uid(holder));
            wait_for(&format!("the reference of {holder} on {target}"), || {
                service(target).finalizers(target).contains(&reference)
            });
        }
        for object in OBJECTS {
            service(object).begin_cleanup(object);
        }
        wait_for("every reference to be verified", || {
            region.is_verified(&identity) && compute.is_verified(&region)
        });
        let log = EventLog::follow(|object| match &address {
            Some(address) => ("--nats", address.clone()),
            None => ("--url", service(object).url.clone()),
        });
        Self {
            identity,
            region,
            compute,
            nats,
            log,
        }
    }

    fn service(&self, object: &Object) -> &Service {
        service_of([&self.identity, &self.region, &self.compute], object)
    }

    /// DELETING, while the service of its holders is away. That one learns of it once it is back.
    fn the_project_is_deleted(&mut self) {
        self.region.kill();
        self.identity.delete(&PROJECT);
        self.log.until_deleted(&PROJECT);
        self.identity.until_phase(&PROJECT, "DELETING");
        wait_for("people to be told who holds the project", || {
            self.identity.is_blocked(&PROJECT, "cloudidentity.region.example.com")
        });
        self.identity.kill_and_restart();
        self.compute.kill();
        self.region.restart();
    }

    /// All that is held is DELETING, while the service of the clusters is away. Nothing holds the other cloud identity.
    fn the_region_follows(&mut self) {
        self.log.until_deleted(&OTHER_CLOUD_IDENTITY);
        self.region.until_phase(&OTHER_CLOUD_IDENTITY, "DRAINING");
        for object in [&CLOUD_IDENTITY, &NETWORK, &SERVER_GROUP] {
            self.log.until_deleted(object);
            self.region.until_phase(object, "DELETING");
        }
        self.region.kill_and_restart();
        self.compute.restart();
    }

    /// DRAINING, and the cleanup ends while its service hears nothing of its targets.
    fn a_cluster_drains(&mut self) {
        for cluster in [&CLUSTER, &OTHER_CLUSTER] {
            self.log.until_deleted(cluster);
            self.compute.until_phase(cluster, "DRAINING");
        }
        assert_eq!(self.region.phase(&NETWORK), "DELETING");
        for object in OBJECTS {
            assert!(!self.log.is_erased(object), "all of them wait for the clusters");
        }
        self.compute.kill();
        match &mut self.nats {
            Some(nats) => nats.kill(),
            None => {
                self.region.kill();
                self.identity.kill();
            }
        }
        self.compute.restart();
        self.compute.end_cleanup(&CLUSTER);
        self.until_waits_for(&CLUSTER, "network.region.example.com");
        match &mut self.nats {
            Some(nats) => nats.resume(),
            None => self.region.restart(),
        }
        self.log.until_erased(&CLUSTER);
    }

    /// FINALIZING, while the service of its targets is away. Its own one knows these: it has just released them for the
    /// first cluster, and was not killed since.
    fn the_other_cluster_releases_its_targets(&mut self) {
        self.region.kill();
        self.compute.end_cleanup(&OTHER_CLUSTER);
        self.compute.until_phase(&OTHER_CLUSTER, "FINALIZING");
        self.compute.kill_and_restart();
        self.until_waits_for(&OTHER_CLUSTER, "network.region.example.com");
        self.region.restart();
        self.log.until_erased(&OTHER_CLUSTER);
    }

    /// DRAINING, and one of the two is on its way to FINALIZING, in which nothing keeps them: they release a target of
    /// their own service.
    fn the_networks_drain(&mut self) {
        self.region.until_phase(&NETWORK, "DRAINING");
        self.region.until_phase(&SERVER_GROUP, "DRAINING");
        assert_eq!(self.region.phase(&CLOUD_IDENTITY), "DELETING");
        self.region.end_cleanup(&SERVER_GROUP);
        self.region.kill_and_restart();
        self.region.end_cleanup(&NETWORK);
        self.log.until_erased(&NETWORK);
        self.log.until_erased(&SERVER_GROUP);
    }

    /// DRAINING. Without NATS, the service of the project has been away since a cluster drained.
    fn a_cloud_identity_drains(&mut self) {
        self.region.until_phase(&CLOUD_IDENTITY, "DRAINING");
        self.region.kill_and_restart();
        self.region.end_cleanup(&CLOUD_IDENTITY);
        if self.identity.is_killed {
            self.until_waits_for(&CLOUD_IDENTITY, "project.identity.example.com");
            self.identity.restart();
        }
        self.log.until_erased(&CLOUD_IDENTITY);
    }

    /// FINALIZING, while the service of its target is away. Its own one knows the project: it has just released it for
    /// the first cloud identity, and was not killed since.
    fn the_other_cloud_identity_releases_its_target(&mut self) {
        self.identity.kill();
        self.region.end_cleanup(&OTHER_CLOUD_IDENTITY);
        self.region.until_phase(&OTHER_CLOUD_IDENTITY, "FINALIZING");
        self.region.kill_and_restart();
        self.until_waits_for(&OTHER_CLOUD_IDENTITY, "project.identity.example.com");
        self.identity.restart();
        self.log.until_erased(&OTHER_CLOUD_IDENTITY);
    }

    /// DRAINING: nothing holds it any more.
    fn the_project_drains(&mut self) {
        self.identity.until_phase(&PROJECT, "DRAINING");
        assert!(!self.identity.finalizers(&PROJECT).contains("cloudidentity."));
        self.identity.kill_and_restart();
        self.identity.end_cleanup(&PROJECT);
        self.log.until_erased(&PROJECT);
    }

    /// Until its service, which came back and hears nothing of these targets, has said so. It keeps the object.
    fn until_waits_for(&self, object: &Object, targets: &str) {
        let service = self.service(object);
        wait_for(&format!("people to be told why {object} waits"), || {
            service.is_blocked(object, targets)
        });
        assert!(!service.phase(object).is_empty(), "{object} is there");
    }

    /// Events of several services, and of several kinds, may arrive in any order, and a process may be killed between
    /// releasing a target and its own object's end. What is certain is that a holder is deleted because of its target,
    /// and that the target is erased after its holder had nothing left to do but to release it. All times are of one
    /// machine's clock.
    fn assert_order(&self) {
        for object in OBJECTS {
            assert!(self.log.is_in_order(object), "{object:?}");
        }
        for (holder, target) in REFERENCES {
            let [cause, effect] = [target, holder].map(|object| self.log.deleted_at(object));
            assert!(cause <= effect, "{target:?} at {cause}, {holder:?} at {effect}");
            let through = self.service(holder).finalizing_since(holder);
            let erased = self.service(target).erased_at(target);
            assert!(through <= erased, "{holder:?} at {through}, {target:?} at {erased}");
            // Of one cluster, versions say what times with whole seconds do not.
            if holder.service == target.service {
                let [first, last] = [holder, target].map(|object| self.service(object).last_version(object));
                assert!(
                    first < last,
                    "{holder:?} at version {first}, {target:?} at version {last}"
                );
            }
        }
    }
}

fn service_of<'s>(services: [&'s Service; 3], object: &Object) -> &'s Service {
    let found = services.into_iter().find(|service| service.name == object.service);
    found.expect("one of the three")
}

/// Archived clusters that name objects of the region: one is deleted and releases them, the other goes with the
/// network.
#[test]
fn what_is_archived_goes_with_the_target_of_another_service() {
    if !walk_is_required() {
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
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
    let bears = |object: &Object, reference: &str| region.finalizers(object).contains(reference);
    wait_for("the references", || {
        let all = |reference: &String| bears(&NETWORK, reference) && bears(&SERVER_GROUP, reference);
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
        !bears(&NETWORK, second) && !bears(&SERVER_GROUP, second)
    });
    assert!(bears(&NETWORK, prod) && bears(&SERVER_GROUP, prod));

    // The compute service learns of the deletion once it is back.
    compute.kill();
    region.delete(&NETWORK);
    until("the network to wait", &region, "network", "Deleting");
    compute.restart();
    until("the archived cluster to go", &compute, "cluster", "Erased");
    until("the network to go", &region, "network", "Erased");
    assert!(!bears(&SERVER_GROUP, prod), "it holds nothing any more");
}

fn until(what: &str, service: &Service, kind: &str, event: &str) {
    wait_for(what, || service.event(kind) == event);
}

/// Neither by the command nor by a plain change of the field it gets to a project that is being deleted.
#[test]
fn a_cloud_identity_moves_to_another_project_which_stays() {
    if !walk_is_required() {
        return;
    }
    assert!(kubectl_is_there(), "the walk uses kubectl");
    let [identity, region, _compute] = Service::start_all("api", None);
    for service in [&identity, &region] {
        service.apply();
    }
    for project in [&OTHER_PROJECT, &LEAVING_PROJECT] {
        let project = format!(
            "{{apiVersion: identity.example.com/v1, kind: Project, metadata: {{name: {}, namespace: default}}, spec: {{}}}}",
            project.name
        );
        identity.run.kubectl(&["apply", "-f", "-"], &project);
    }
    let bears = |project| {
        identity
            .finalizers(project)
            .contains("cloudidentity.region.example.com/")
    };
    wait_for("the reference", || bears(&PROJECT));
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
    assert!(done.status.success() && bears(&OTHER_PROJECT));
    wait_for("the former project to be free", || !bears(&PROJECT));

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
    assert!(bears(&OTHER_PROJECT) && !bears(&LEAVING_PROJECT));
    let named = region.run.kubectl(
        &["get", "cloudidentity", "openstack", "-o=jsonpath={.spec.project}"],
        "",
    );
    assert_eq!(named, "b");
}
