//! Watches of processes: opening, delivering and repeating events, and ending.

use futures::StreamExt;
use kindex_kube_client::{ClusterError, WatchEvent};
use kindex_model::object::ResourceVersion;
use kindex_runtime::message::Input;

use super::api::{RequestFailure, failure};
use super::cluster::version_of;
use super::fault::Fault;
use super::http;
use super::process::Watch;
use super::step::Step;
use super::world::{World, log};

impl World<'_> {
    /// Opens the watch that a process requested, or fails to.
    pub(crate) fn open_watch(&mut self, who: usize, fault: Option<Fault>) -> bool {
        let who = who % self.processes.len();
        let Watch::Opening(from) = self.processes[who].watch else {
            return false;
        };
        let away = (self.elapsed < self.outages.cluster).then_some(Fault::ClusterAway);
        let fault = away
            .or(fault)
            .filter(|fault| fault.impossible(Step::OpenWatch).is_none());
        let failing = match fault {
            Some(Fault::Lost | Fault::ClusterAway) => Some(RequestFailure::Silence),
            Some(Fault::Throttled) => Some(RequestFailure::Throttled),
            Some(Fault::ServerError) => Some(RequestFailure::ServerError),
            Some(Fault::Expired) => {
                self.compact();
                None
            }
            _ => None,
        };
        let expired = self.api.cluster().next_change(from).is_err();
        let opened = self.open(who, from, failing);
        let met = if expired && failing.is_none() {
            Some(Fault::Expired)
        } else {
            fault.filter(|_| failing.is_some())
        };
        if let Some(fault) = met {
            self.counts.faults += 1;
            self.met(fault, Step::OpenWatch);
        }
        match opened {
            Ok(()) => {
                log!(self, "{who} watches from {from}");
                self.processes[who].watch = Watch::Open(from);
                self.processes[who].delivered = from;
            }
            Err(error) => {
                log!(self, "{who} cannot watch from {from}: {error}");
                self.step(who, Input::Watch(Err(error)));
            }
        }
        true
    }

    fn open(&mut self, who: usize, from: u64, failing: Option<RequestFailure>) -> Result<(), ClusterError> {
        let process = &mut self.processes[who];
        if let Some(watches) = &process.watches {
            self.api.set_failure(failing);
            let opening = watches.watch(process.executor.kind, ResourceVersion(from));
            let opened = self.harness.run(self.parts, opening);
            self.api.set_failure(None);
            process.stream = Some(opened?);
            return Ok(());
        }
        match failing {
            Some(failing) => Err(failure(failing)),
            None => self.api.cluster().next_change(from).map(drop),
        }
    }

    /// Delivers the next event of the watch, if there is one and the process has room for it.
    pub(crate) fn event(&mut self, who: usize) -> bool {
        let who = who % self.processes.len();
        let Some(position) = self.listening(who) else {
            return false;
        };
        let (event, line) = match self.api.cluster().next_change(position) {
            Ok(None) => return false,
            Ok(Some(change)) => (Ok(change.event()), self.wired(who, || http::line(change))),
            Err(error) => (Err(error), self.wired(who, http::expired_line)),
        };
        match &event {
            Ok(event) => self.processes[who].watch = Watch::Open(version_of(event)),
            Err(_) => {
                self.counts.faults += 1;
                self.met(Fault::Expired, Step::Watch);
            }
        }
        log!(self, "{who} sees {event:?}");
        self.deliver(who, event, line);
        true
    }

    /// Delivers a bookmark, if the watch has no event to deliver.
    pub(crate) fn bookmark(&mut self, who: usize) -> bool {
        let who = who % self.processes.len();
        let Some(position) = self.listening(who) else {
            return false;
        };
        let cluster = self.api.cluster();
        let nothing_new = matches!(cluster.next_change(position), Ok(None));
        let version = cluster.version;
        drop(cluster);
        if !nothing_new || version <= position {
            return false;
        }
        self.processes[who].watch = Watch::Open(version);
        log!(self, "{who} bookmark @{version}");
        let line = self.wired(who, || http::bookmark_line(version));
        self.deliver(who, Ok(WatchEvent::Bookmark(ResourceVersion(version))), line);
        true
    }

    fn listening(&self, who: usize) -> Option<u64> {
        let process = &self.processes[who];
        match process.watch {
            Watch::Open(position) if process.wants_events() => Some(position),
            Watch::Open(_) | Watch::Opening(_) | Watch::Closed => None,
        }
    }

    fn wired(&self, who: usize, line: impl FnOnce() -> String) -> Option<String> {
        self.processes[who].wire.is_some().then(line)
    }

    /// Delivers an event to a process, through the production client if that is part of the history.
    fn deliver(&mut self, who: usize, event: Result<WatchEvent, ClusterError>, line: Option<String>) {
        let process = &mut self.processes[who];
        if let Ok(event) = &event
            && version_of(event) > process.delivered
        {
            process.delivered = version_of(event);
            self.checks.unsaved_events.note(event);
        }
        let event = match (&process.wire, line) {
            (Some(wire), Some(line)) => {
                wire.send(line);
                let stream = process.stream.as_mut().expect("a watch is open");
                let received = self.harness.run(self.parts, stream.next());
                received.expect("what was sent is received")
            }
            _ => event,
        };
        self.step(who, Input::Watch(event));
    }

    /// The watch goes back and repeats events.
    pub(crate) fn replay(&mut self, who: usize, events: usize) -> bool {
        let who = who % self.processes.len();
        let Watch::Open(position) = self.processes[who].watch else {
            return false;
        };
        let back = self.api.cluster().rewound(position, events);
        if back == position {
            return false;
        }
        log!(self, "the watch of {who} repeats the events after {back}");
        self.counts.faults += 1;
        self.met_all(Fault::Replay, who);
        self.processes[who].watch = Watch::Open(back);
        true
    }

    /// The watch ends, with or without an error.
    pub(crate) fn end_watch(&mut self, who: usize, broken: bool) -> bool {
        let who = who % self.processes.len();
        if !matches!(self.processes[who].watch, Watch::Open(_)) {
            return false;
        }
        self.counts.faults += 1;
        if broken {
            log!(self, "{who} watch breaks");
            self.met_all(Fault::WatchBreaks, who);
            self.step(who, Input::Watch(Err(failure(RequestFailure::Silence))));
        } else {
            log!(self, "{who} watch ends");
            self.met_all(Fault::WatchEnds, who);
            self.step(who, Input::WatchEnded);
        }
        true
    }

    /// Etcd compacts its history.
    pub(crate) fn compact(&mut self) -> bool {
        log!(self, "etcd is compacted");
        self.counts.faults += 1;
        for who in 0..self.processes.len() {
            self.met_all(Fault::Compaction, who);
        }
        self.api.cluster().compact();
        true
    }
}
