//! The project is deleted, and processes are killed in every state in which a deletion can stand still.

use kindex_harness::nats::Nats;

use super::graph::{
    CLOUD_IDENTITY, CLUSTER, NETWORK, OTHER_CLOUD_IDENTITY, OTHER_CLUSTER, Object, PROJECT, SAMPLES, SERVER_GROUP,
};
use super::log::EventLog;
use super::service::Service;
use super::{can_run, stage};
use crate::process::wait_for;

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
    if !can_run() {
        return;
    }
    let mut walk = Walk::begin(events);
    walk.the_project_is_deleted();
    walk.the_region_follows();
    walk.a_cluster_drains();
    walk.the_other_cluster_releases_its_targets();
    walk.the_networks_drain();
    walk.a_cloud_identity_drains();
    walk.the_other_cloud_identity_releases_its_target();
    walk.the_project_drains();
    stage::assert_order(walk.services(), &walk.log, &SAMPLES);
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
        let nats = stage::nats(events);
        let [identity, region, compute] = Service::start_all(events, nats.as_ref());
        let services = [&identity, &region, &compute];
        stage::apply(services, &SAMPLES);
        for object in SAMPLES.objects() {
            stage::of(services, object).begin_cleanup(object);
        }
        stage::until_verified(services);
        let log = stage::follow(services, &SAMPLES, nats.as_ref());
        Self {
            identity,
            region,
            compute,
            nats,
            log,
        }
    }

    fn services(&self) -> [&Service; 3] {
        [&self.identity, &self.region, &self.compute]
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

    /// DRAINING, and the cleanup ends while its service hears nothing of its targets. NATS comes back without its disk:
    /// each service has to feed it anew, and to read anew what the others feed.
    fn a_cluster_drains(&mut self) {
        for cluster in [&CLUSTER, &OTHER_CLUSTER] {
            self.log.until_deleted(cluster);
            self.compute.until_phase(cluster, "DRAINING");
        }
        assert_eq!(self.region.phase(&NETWORK), "DELETING");
        for object in SAMPLES.objects() {
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
            Some(nats) => {
                nats.lose_disk();
                nats.resume();
            }
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
        let service = stage::of(self.services(), object);
        wait_for(&format!("people to be told why {object} waits"), || {
            service.is_blocked(object, targets)
        });
        assert!(!service.phase(object).is_empty(), "{object} is there");
    }
}
