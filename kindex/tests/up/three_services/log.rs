//! The event logs of the three services, followed while these are killed.

use jiff::Timestamp;
use serde_json::Value;

use super::graph::{Graph, Object};
use crate::events::{Follower, Printed, events};
use crate::process::wait_for;

/// What an event says of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Follows the log of each kind of a graph at the place of its service, a flag of `kindex events`, and waits until
    /// all objects are known to exist. Two followers of one log might repeat an event after a later one.
    pub(super) fn follow(graph: &Graph, place: impl Fn(&str) -> (&'static str, String)) -> Self {
        let printed = Printed::default();
        let topics = graph
            .topics()
            .into_iter()
            .map(|(topic, service)| (topic, place(service)));
        let followers = topics.map(|(topic, (flag, address))| {
            wait_for(&format!("the log of {topic}"), || {
                events(&[topic.as_str(), flag, &address]).status.success()
            });
            Follower::begin_with(&topic, &[flag, &address], printed.clone())
        });
        let followers = followers.collect();
        for object in graph.objects() {
            wait_for(object.name, || printed.has(object.name, false));
        }
        Self {
            printed,
            _followers: followers,
        }
    }

    /// All that was said of an object.
    pub(super) fn of(&self, object: &Object) -> Vec<Value> {
        self.printed.of(object.name)
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

    pub(super) fn until_all_is_erased(&self, graph: &Graph) {
        graph.objects().for_each(|object| self.until_erased(object));
    }

    /// How often an object of a graph was deleted or erased.
    pub(super) fn changes(&self, graph: &Graph) -> usize {
        let deleted = graph.objects().filter(|object| self.is_deleted(object)).count();
        deleted + graph.objects().filter(|object| self.is_erased(object)).count()
    }

    /// Whether it existed, was deleted and was erased, and nothing was taken back. Events may be repeated, and who was
    /// cut off meanwhile is told the last of them alone.
    pub(super) fn is_in_order(&self, object: &Object) -> bool {
        let events = self.of(object);
        let states = events.iter().map(|event| {
            let is_deleted = !event["deletionTimestamp"].is_null();
            match (event["erased"] == true, is_deleted) {
                (true, _) => State::Erased,
                (false, true) => State::Deleting,
                (false, false) => State::Exists,
            }
        });
        let states: Vec<_> = states.collect();
        let ends = [states.first(), states.last()];
        states.is_sorted() && ends == [Some(&State::Exists), Some(&State::Erased)]
    }

    /// Since when it was deleted.
    pub(super) fn deleted_at(&self, object: &Object) -> Timestamp {
        let events = self.of(object);
        let time = events.iter().find_map(|event| event["deletionTimestamp"].as_str());
        time.expect("it was deleted").parse().expect("a time")
    }
}
