//! One controller on a bench: inputs by hand, outputs in a list, time at will.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kindex_kube_client::{Page, WatchEvent};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_model::projection::Version;
use kindex_model::row_version::RowVersion;
use kindex_query::Life;
use kindex_runtime::controller::Controller;
use kindex_runtime::message::{Effect, Input, Now, Outcome, Output, Saved, StoreFailure, Ticket};
use kindex_runtime::metrics::KindMetrics;
use kindex_runtime::settings::Settings;
use kindex_sim::thing::{FINALIZER, FOREIGN_FINALIZER, PLATFORM, THING};
use kindex_store::{Arrival, CheckpointOutcome, RowState, RowWrite, Written};
use serde_json::json;

pub const START: i64 = 1_800_000_000;

pub struct Bench {
    pub controller: Controller,
    pub metrics: Arc<KindMetrics>,
    pub elapsed: Duration,
    pub checkpoints: Vec<Checkpoint>,
    /// The marks that were known when they were saved.
    pub known_marks: Vec<Option<ResourceVersion>>,
    /// How the next position is answered that is to be saved, if not as usual.
    pub saving: Option<CheckpointOutcome>,
}

/// Everything up to this version is settled.
pub fn settled(version: u64) -> Checkpoint {
    Checkpoint::Settled(ResourceVersion(version))
}

/// The mark of a cluster that was found restored at this version.
pub fn restoring(version: u64) -> Checkpoint {
    Checkpoint::Restoring(ResourceVersion(version))
}

/// What an object on the bench says.
#[derive(Clone)]
pub struct Thing {
    pub uid: String,
    pub version: u64,
    pub has_finalizer: bool,
    /// Whether another controller's finalizer is there.
    pub held: bool,
    pub deleted: bool,
    pub annotations: Vec<&'static str>,
}

pub fn thing(uid: &str, version: u64) -> Thing {
    Thing {
        uid: uid.to_owned(),
        version,
        has_finalizer: true,
        held: false,
        deleted: false,
        annotations: Vec::new(),
    }
}

impl Thing {
    pub fn object(&self) -> Object {
        let annotations: serde_json::Map<_, _> = self
            .annotations
            .iter()
            .map(|name| ((*name).to_owned(), json!("true")))
            .collect();
        let mut metadata = json!({
            "uid": self.uid, "name": format!("name-{}", self.uid), "namespace": "bench",
            "resourceVersion": self.version.to_string(), "annotations": annotations,
        });
        let finalizers = [(self.has_finalizer, FINALIZER), (self.held, FOREIGN_FINALIZER)];
        let finalizers: Vec<&str> = finalizers
            .iter()
            .filter(|(there, _)| *there)
            .map(|(_, name)| *name)
            .collect();
        if !finalizers.is_empty() {
            metadata["finalizers"] = json!(finalizers);
        }
        if self.deleted {
            let time = Timestamp::from_second(START).expect("in range");
            metadata["deletionTimestamp"] = json!(time.to_string());
        }
        let object = json!({"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "spec": {}});
        Object::parse_str(&object.to_string()).expect("an object")
    }
}

impl Bench {
    /// A controller that has not begun.
    pub fn new(settings: Settings) -> Self {
        Self::of(&THING, Vec::new(), settings)
    }

    /// `owned`: the kinds whose objects those of `kind` may own.
    fn of(kind: &'static Kind, owned: Vec<&'static Kind>, settings: Settings) -> Self {
        let metrics = Arc::new(KindMetrics::default());
        let controller = Controller::new(kind, PLATFORM, owned, settings, metrics.clone(), 7);
        Self {
            controller,
            metrics,
            elapsed: Duration::ZERO,
            checkpoints: Vec::new(),
            known_marks: Vec::new(),
            saving: None,
        }
    }

    /// A controller that watches from version 1.
    pub fn watching(settings: Settings) -> Self {
        Self::watching_kind(&THING, settings)
    }

    /// The same for another kind.
    pub fn watching_kind(kind: &'static Kind, settings: Settings) -> Self {
        let mut bench = Self::of(kind, Vec::new(), settings);
        bench.watch();
        bench
    }

    /// The same for things that may own others.
    pub fn watching_owners(settings: Settings) -> Self {
        let mut bench = Self::of(&THING, vec![&THING], settings);
        bench.watch();
        bench
    }

    fn watch(&mut self) {
        self.step(Input::Start);
        let saved = Saved {
            checkpoint: Some(settled(1)),
            quarantined: Vec::new(),
        };
        self.step(Input::Loaded(Ok(saved)));
        self.step(Input::Probed(Ok(ResourceVersion(1))));
    }

    /// Positions are saved at once, and kept in `checkpoints`.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let start = Timestamp::from_second(START).expect("in range");
        let now = Now {
            wall: start + self.elapsed,
            elapsed: self.elapsed,
        };
        let mut outputs = Vec::new();
        for output in self.controller.step(now, input) {
            if let Output::SaveCheckpoint { checkpoint, known_mark } = output {
                self.checkpoints.push(checkpoint);
                self.known_marks.push(known_mark);
                let saving = self.saving.take().unwrap_or(CheckpointOutcome::Done);
                outputs.extend(self.step(Input::CheckpointSaved(Ok(saving))));
            } else {
                outputs.push(output);
            }
        }
        outputs
    }

    pub fn applied(&mut self, thing: &Thing) -> Vec<Output> {
        self.step(Input::Watch(Ok(WatchEvent::Applied(thing.object()))))
    }

    pub fn gone(&mut self, thing: &Thing) -> Vec<Output> {
        self.step(Input::Watch(Ok(WatchEvent::Deleted(thing.object()))))
    }

    /// Lets time pass up to the controller's next deadline.
    pub fn wait(&mut self) -> Vec<Output> {
        let deadline = self.controller.deadline().expect("it waits for something");
        self.elapsed = self.elapsed.max(deadline);
        self.step(Input::Timer)
    }

    /// Answers a read of rows: none is there.
    pub fn no_rows(&mut self, outputs: &[Output]) -> Vec<Output> {
        self.rows(outputs, Vec::new())
    }

    pub fn rows(&mut self, outputs: &[Output], rows: Vec<RowState>) -> Vec<Output> {
        let ticket = outputs.iter().find_map(|output| match output {
            Output::ReadRows(ticket, _) => Some(*ticket),
            _ => None,
        });
        self.step(Input::Rows(ticket.expect("rows are asked for"), Ok(rows)))
    }

    pub fn written(&mut self, ticket: Ticket, writes: usize) -> Vec<Output> {
        let outcome = Outcome {
            written: Written::Inserted,
            problems: Vec::new(),
            replaced: Vec::new(),
        };
        self.step(Input::Written(ticket, Ok(vec![outcome; writes])))
    }

    pub fn page(&mut self, things: &[Thing], version: u64) -> Vec<Output> {
        let page = Page {
            objects: things.iter().map(Thing::object).collect(),
            resource_version: ResourceVersion(version),
            ..Page::default()
        };
        self.step(Input::Page(Ok(page)))
    }
}

/// A live row of ours that holds this version.
pub fn live(uid: &str, version: u64) -> RowState {
    let object = thing(uid, version).object();
    RowState {
        arrival: Arrival(1),
        uid: object.metadata.uid.clone(),
        namespace: object.metadata.namespace.clone(),
        name: object.metadata.name.clone(),
        res_version: RowVersion::Cluster(ResourceVersion(version)),
        hash: Some(Version::project(&THING, object).hash),
        life: Life::Live,
    }
}

/// The write among outputs, by uid and version.
pub fn write_of(outputs: &[Output]) -> Option<(Ticket, Vec<(Uid, u64)>)> {
    outputs.iter().find_map(|output| match output {
        Output::Write(ticket, writes) => {
            let version = |write: &RowWrite<Object>| match write {
                RowWrite::Store { version: object, .. } | RowWrite::Record { object, .. } => {
                    object.metadata.resource_version.0
                }
                RowWrite::SoftDelete { .. } => 0,
            };
            let writes = writes.iter().map(|write| (write.uid().clone(), version(write)));
            Some((*ticket, writes.collect()))
        }
        _ => None,
    })
}

pub fn effects_of(outputs: &[Output]) -> Vec<Effect> {
    let effect = |output: &Output| match output {
        Output::Effect(_, effect) => Some(effect.clone()),
        _ => None,
    };
    outputs.iter().filter_map(effect).collect()
}

pub fn away() -> StoreFailure {
    StoreFailure {
        retryable: true,
        is_outage: true,
        cause: "connection",
        message: "away".to_owned(),
    }
}

pub fn refused() -> StoreFailure {
    StoreFailure {
        retryable: false,
        is_outage: false,
        cause: "refused",
        message: "too long".to_owned(),
    }
}
