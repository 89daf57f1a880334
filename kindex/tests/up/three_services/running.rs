//! The project is deleted, and processes are killed at any moment meanwhile.

use super::graph::{CLEANED_UP, MANY, OUT_OF_REACH, PROJECT};
use super::kills::Kills;
use super::service::Service;
use super::{can_run, stage};

#[test]
fn a_running_deletion_of_three_services_goes_in_order_whenever_they_are_killed() {
    walk("api", 1);
}

#[test]
fn a_running_one_does_so_too_by_lists_and_watches() {
    walk("watch", 2);
}

#[test]
fn a_running_one_does_so_too_over_nats() {
    walk("nats", 3);
}

/// Deletes the project, kills processes again and again, and finds all else as it was before.
fn walk(events: &str, seed: u64) {
    if !can_run() {
        return;
    }
    let nats = stage::nats(events);
    let mut services = Service::start_all(events, nats.as_ref());
    let all = services.each_ref();
    stage::apply(all, &OUT_OF_REACH);
    let others = stage::untouched(all);
    stage::apply(all, &MANY);
    stage::until_verified(all);
    let log = stage::follow(all, &MANY, nats.as_ref());
    stage::of(all, &CLEANED_UP).begin_cleanup(&CLEANED_UP);
    stage::of(all, &PROJECT).delete(&PROJECT);
    let kills = Kills::at_changes(&mut services, &log, &MANY, &CLEANED_UP, seed);

    let all = services.each_ref();
    kills.assert_met(all, &MANY);
    stage::assert_order(all, &log, &MANY);
    assert_eq!(stage::untouched(all), others, "nothing else goes");
}
