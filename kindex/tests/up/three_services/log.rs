//! The event logs of the three services, followed while these are killed.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::graph::{OBJECTS, Object};
use crate::events::{Follower, Printed, events};
use crate::process::wait_for;

/// What an event says of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Exists,
    Deleting,
    Erased,
}

/// All that the logs have of the objects.
pub(super) struct EventLog {
    printed: Printed,
    _followers: Vec<Follower>,
}

impl EventLog {
    /// Follows the log of each object's kind at its place, a flag of `kindex events`, and waits until the object is
    /// known to exist. Two followers of one log might repeat an event after a later one.
    pub(super) fn follow(place: impl Fn(&Object) -> (&'static str, String)) -> Self {
        let printed = Printed::default();
        let topics = BTreeSet::from(OBJECTS.map(|object| (object.topic(), place(object))));
        let followers = topics.iter().map(|(topic, (flag, address))| {
            wait_for(&format!("the log of {topic}"), || {
                events(&[topic.as_str(), flag, address]).status.success()
            });
            Follower::begin_with(topic, &[flag, address], printed.clone())
        });
        let followers = followers.collect();
        for object in OBJECTS {
            wait_for(object.name, || printed.has(object.name, false));
        }
        Self {
            printed,
            _followers: followers,
        }
    }

    pub(super) fn is_deleted(&self, object: &Object) -> bool {
        self.printed.is_deleted(object.name)
    }

    pub(super) fn is_erased(&self, object: &Object) -> bool {
        self.printed.has(object.name, true)
    }

    pub(super) fn until_deleted(&self, object: &Object) {
        wait_for(&format!("{object} to be deleted"), || self.is_deleted(object));
    }

    pub(super) fn until_erased(&self, object: &Object) {
        wait_for(&format!("{object} to be erased"), || self.is_erased(object));
    }

    /// Whether it existed, was deleted and was erased, and nothing was taken back. Events may be repeated.
    pub(super) fn is_in_order(&self, object: &Object) -> bool {
        let events = self.printed.of(object.name);
        let states = events.iter().map(|event| {
            let is_deleted = !event["deletionTimestamp"].is_null();
            match (event["erased"] == true, is_deleted) {
                (true, _) => State::Erased,
                (false, true) => State::Deleting,
                (false, false) => State::Exists,
            }
        });
        let mut states: Vec<_> = states.collect();
        states.dedup();
        states == [State::Exists, State::Deleting, State::Erased]
    }

    /// Since when it was deleted.
    pub(super) fn deleted_at(&self, object: &Object) -> Timestamp {
        let events = self.printed.of(object.name);
        let time = events.iter().find_map(|event| event["deletionTimestamp"].as_str());
        time.expect("it was deleted").parse().expect("a time")
    }
}
