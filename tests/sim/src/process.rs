//! One ingester process: the production controller, its requests in flight, and the answers on their way to it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kindex_kube_client::{ObjectApi, WatchApi, WatchStream};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, Uid};
use kindex_runtime::controller::Controller;
use kindex_runtime::driver::execute::Executor;
use kindex_runtime::message::{Effect, Input, Now, Output};
use kindex_runtime::metrics::KindMetrics;
use kindex_runtime::settings::Settings;
use kindex_store::RowWrite;

use super::http::Wire;
use super::step::Step;
use super::storage::SimStorage;
use super::thing::{KINDS, PLATFORM};

/// The watch of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    Closed,
    /// Requested, from this version.
    Opening(u64),
    /// Open, and has delivered everything up to this version.
    Open(u64),
}

/// Where and how a process is started.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) kind: &'static Kind,
    pub(crate) settings: Settings,
    pub(crate) cluster: Arc<dyn ObjectApi>,
    pub(crate) storage: Arc<SimStorage>,
    pub(crate) metrics: Arc<KindMetrics>,
    /// The connection of the production client, if that is part of the history.
    pub(crate) wire: Option<Wire>,
    /// Where the production client opens watches. Without one, the scheduler delivers events itself.
    pub(crate) watches: Option<Arc<dyn WatchApi>>,
}

/// One process.
pub(crate) struct Process {
    controller: Controller,
    pub(crate) executor: Executor,
    pub(crate) wire: Option<Wire>,
    pub(crate) watches: Option<Arc<dyn WatchApi>>,
    /// The open watch as a stream of the production client.
    pub(crate) stream: Option<WatchStream>,
    /// Requests that have not been carried out.
    pub(crate) requests: Vec<Output>,
    /// Answers in flight, with the steps that they answer.
    pub(crate) answers: Vec<(Step, Option<Uid>, Input)>,
    pub(crate) watch: Watch,
    /// The newest version that a watch has delivered. A watch may go back and repeat earlier ones.
    pub(crate) delivered: u64,
    pub(crate) started: Duration,
    pub(crate) clock_error_s: i64,
    /// When it received a stop.
    pub(crate) stopping: Option<Duration>,
    /// Whether it has noticed a restoration and is saving the mark.
    pub(crate) marking: bool,
    /// The newest version of the cluster that it has received.
    pub(crate) newest: u64,
    /// Whether it found no saved checkpoint and has received nothing from the cluster yet.
    pub(crate) is_blank: bool,
}

impl Process {
    pub(crate) fn new(site: &Site, seed: u64, started: Duration) -> Self {
        let settings = site.settings.clone();
        Self {
            controller: Controller::new(
                site.kind,
                PLATFORM,
                vec![site.kind],
                settings,
                site.metrics.clone(),
                seed,
            ),
            executor: Executor {
                kind: site.kind,
                registry: KINDS,
                cluster: site.cluster.clone(),
                storage: site.storage.clone(),
            },
            wire: site.wire.clone(),
            watches: site.watches.clone(),
            stream: None,
            requests: Vec::new(),
            answers: Vec::new(),
            watch: Watch::Closed,
            delivered: 0,
            started,
            clock_error_s: 0,
            stopping: None,
            marking: false,
            newest: 0,
            is_blank: false,
        }
    }

    /// The steps in flight, in order.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let asked = self.requests.iter().map(Step::of);
        let answered = self.answers.iter().map(|(step, ..)| *step);
        let watch = match self.watch {
            Watch::Closed => None,
            Watch::Opening(_) => Some(Step::OpenWatch),
            Watch::Open(_) => Some(Step::Watch),
        };
        let mut steps: Vec<Step> = asked.chain(answered).chain(watch).collect();
        if self.is_pausing() {
            steps.push(Step::Pause);
        }
        steps
    }

    /// Whether it only waits for a timer.
    pub(crate) fn is_pausing(&self) -> bool {
        self.requests.is_empty() && self.answers.is_empty() && self.controller.deadline().is_some()
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.controller.is_drained()
    }

    pub(crate) fn wants_events(&self) -> bool {
        self.controller.wants_events()
    }

    /// When its next timer is due, in the time of the history.
    pub(crate) fn wakes_at(&self) -> Option<Duration> {
        self.controller.deadline().map(|at| at + self.started)
    }

    /// Gives an input to the controller.
    ///
    /// # Errors
    /// The first guarantee to the driver that an output breaks.
    pub(crate) fn step(&mut self, elapsed: Duration, wall: Timestamp, input: Input) -> Result<Vec<Output>, String> {
        let now = Now {
            wall,
            elapsed: elapsed - self.started,
        };
        if matches!(input, Input::WatchEnded | Input::Watch(Err(_))) {
            self.close_watch();
        }
        let outputs = self.controller.step(now, input);
        for output in &outputs {
            self.check_contract(output)?;
            match output {
                Output::Watch(from) => {
                    self.close_watch();
                    self.watch = Watch::Opening(from.0);
                }
                Output::StopWatch => self.close_watch(),
                Output::Notify(_) => {}
                request => {
                    self.marking |= is_mark(request);
                    self.requests.push(request.clone());
                }
            }
        }
        Ok(outputs)
    }

    pub(crate) fn close_watch(&mut self) {
        self.watch = Watch::Closed;
        self.stream = None;
    }

    /// At most one effect and one write are in flight for an object.
    fn check_contract(&self, output: &Output) -> Result<(), String> {
        match output {
            Output::Effect(uid, _) => {
                let asked = self.requests.iter().any(|known| effect_of(known) == Some(uid));
                let answered = self.answers.iter().any(|(_, known, _)| known.as_ref() == Some(uid));
                if asked || answered {
                    return Err(format!("two effects for {uid} are in flight at once"));
                }
            }
            Output::Write(_, writes) => {
                let mut uids: Vec<&Uid> = rows(writes).collect();
                let under_way = self.requests.iter().filter_map(|known| match known {
                    Output::Write(_, writes) => Some(writes),
                    _ => None,
                });
                uids.extend(under_way.flat_map(|writes| rows(writes)));
                uids.sort();
                if let Some(twice) = uids.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(format!("two writes for {} are in flight at once", twice[0]));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether a request saves a restore mark.
pub(crate) fn is_mark(output: &Output) -> bool {
    matches!(
        output,
        Output::SaveCheckpoint {
            checkpoint: Checkpoint::Restoring(_),
            ..
        }
    )
}

/// The object of an effect.
pub(crate) fn effect_of(output: &Output) -> Option<&Uid> {
    match output {
        Output::Effect(uid, _) => Some(uid),
        _ => None,
    }
}

/// The objects whose rows a batch writes.
fn rows(writes: &[RowWrite<Object>]) -> impl Iterator<Item = &Uid> {
    let of_a_row = |write: &&RowWrite<Object>| !matches!(write, RowWrite::Record { .. });
    writes.iter().filter(of_a_row).map(RowWrite::uid)
}

/// One line of the log.
pub(crate) fn summary(output: &Output) -> String {
    match output {
        Output::Write(ticket, writes) => {
            let writes: Vec<String> = writes
                .iter()
                .map(|write| match write {
                    RowWrite::Store { version, life, revive } => {
                        format!("{version:?} {life:?}, revive: {revive:?}")
                    }
                    RowWrite::SoftDelete { uid } => format!("soft-delete {uid}"),
                    RowWrite::Record { object, .. } => format!("record {object:?}"),
                })
                .collect();
            format!("write #{ticket}: {}", writes.join(", "))
        }
        Output::Effect(uid, Effect::SetFinalizers { target, finalizers }) => {
            format!("finalizers of {uid} @{}: {finalizers:?}", target.resource_version)
        }
        Output::Effect(uid, Effect::Delete(target)) => format!("delete {uid} @{}", target.resource_version),
        Output::Effect(uid, Effect::Get(name)) => format!("get {name} for {uid}"),
        Output::Effect(uid, Effect::Quarantine { .. }) => format!("quarantine {uid}"),
        other => format!("{other:?}"),
    }
}
