//! What goes into a controller and what comes out of it. A controller does nothing
//! itself: a driver, or a simulation, carries out its outputs and answers with inputs.

use std::time::Duration;

use jiff::Timestamp;
use kindex_kube_client::{ClusterError, Notice, ObjectName, Page, Target, WatchEvent};
use kindex_model::checkpoint::Checkpoint;
use kindex_model::kind::Problem;
use kindex_model::object::{Object, ResourceVersion, Uid};
use kindex_store::{Arrival, CheckpointOutcome, QuarantineRecord, Retry, RowState, RowWrite, StoreError, Written};

/// Both clocks, read together.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Wall clock; may jump.
    pub wall: Timestamp,
    /// Since the controller's start; only grows.
    pub elapsed: Duration,
}

/// Why a store could not do something, as far as a controller needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFailure {
    /// Whether the same call may succeed later without a change of the data: by itself, or once an operator has changed
    /// something.
    pub retryable: bool,
    /// Whether the store has logged it already, for all kinds: see [`StoreError::is_outage`].
    pub is_outage: bool,
    /// Short label for metrics.
    pub cause: &'static str,
    /// As the store says it.
    pub message: String,
}

impl From<StoreError> for StoreFailure {
    fn from(error: StoreError) -> Self {
        Self {
            // An ingester waits for an operator as it waits for the database: no object is to blame.
            retryable: match error.retry() {
                Retry::Later | Retry::AfterChange => true,
                Retry::Never => false,
            },
            is_outage: error.is_outage(),
            cause: label(&error),
            message: error.to_string(),
        }
    }
}

fn label(error: &StoreError) -> &'static str {
    match error {
        StoreError::Retryable { cause, .. } => cause.label(),
        StoreError::Schema(_) => "schema",
        StoreError::Address(_) => "address",
        StoreError::Refused { .. } => "refused",
        StoreError::Corrupt { .. } => "corrupt",
        StoreError::Continue(_) => "continue",
        StoreError::NoHistory(_) => "no_history",
        StoreError::Template(_) => "template",
        StoreError::Direct { .. } => "direct",
        StoreError::UnlimitedDelete(_) => "everything",
    }
}

/// What became of one write.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In the row.
    pub written: Written,
    /// In the projection.
    pub problems: Vec<Problem>,
    /// Archived objects that had the name of this one, and are closed by the write.
    pub replaced: Vec<Uid>,
}

/// Names one batch until it is done.
pub type Ticket = u64;

/// Something to do for one object; a controller has at most one under way for a uid.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Ask the cluster for the object.
    Get(ObjectName),
    /// Replace the finalizers.
    SetFinalizers {
        /// On this condition.
        target: Target,
        /// All of them.
        finalizers: Vec<String>,
    },
    /// Delete the object.
    Delete(Target),
    /// Ask SQL for a live row, and the cluster for an object, that names the object as its owner.
    FindOwned(ObjectName),
    /// Record that the database refuses the object.
    Quarantine {
        /// The object.
        object: Object,
        /// Why.
        reason: String,
    },
    /// Forget the row's version.
    Rewind,
}

impl Effect {
    /// The version of the object that a write to the cluster replaces.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::SetFinalizers { target, .. } | Self::Delete(target) => Some(target),
            Self::Get(_) | Self::FindOwned(_) | Self::Quarantine { .. } | Self::Rewind => None,
        }
    }

    /// One word for traces.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Get(_) => "get",
            Self::SetFinalizers { .. } => "set finalizers",
            Self::Delete(_) => "delete",
            Self::FindOwned(_) => "find owned",
            Self::Quarantine { .. } => "quarantine",
            Self::Rewind => "rewind",
        }
    }
}

/// What an earlier run left in the database.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// Up to where everything is settled; `None` before the first list.
    pub checkpoint: Option<Checkpoint>,
    /// Objects that the database refused.
    pub quarantined: Vec<QuarantineRecord>,
}

/// Why it is not known whether an object owns others.
#[derive(Clone, Debug)]
pub enum OwnedFailure {
    /// SQL has not said so.
    Store(StoreFailure),
    /// The cluster has not.
    Cluster(ClusterError),
}

/// How an effect ended.
#[derive(Clone, Debug)]
pub enum EffectDone {
    /// [`Effect::Get`].
    Got(Result<Option<Object>, ClusterError>),
    /// [`Effect::SetFinalizers`].
    FinalizersSet(Result<Object, ClusterError>),
    /// [`Effect::Delete`].
    Deleted(Result<Option<Object>, ClusterError>),
    /// [`Effect::FindOwned`]: whether there is one.
    OwnedFound(Result<bool, OwnedFailure>),
    /// [`Effect::Quarantine`].
    Quarantined(Result<(), StoreFailure>),
    /// [`Effect::Rewind`].
    Rewound(Result<(), StoreFailure>),
}

impl EffectDone {
    /// The object that the cluster answered with.
    pub fn object(&self) -> Option<&Object> {
        match self {
            Self::Got(Ok(object)) | Self::Deleted(Ok(object)) => object.as_ref(),
            Self::FinalizersSet(Ok(object)) => Some(object),
            Self::Got(Err(_))
            | Self::Deleted(Err(_))
            | Self::FinalizersSet(Err(_))
            | Self::OwnedFound(_)
            | Self::Quarantined(_)
            | Self::Rewound(_) => None,
        }
    }

    /// Whether the object left the cluster with it. The answer has the version before, or none at all.
    pub fn removes(&self) -> bool {
        match self {
            Self::Deleted(Ok(left)) => left.is_none(),
            Self::FinalizersSet(Ok(object)) => {
                object.metadata.deletion_timestamp.is_some() && object.metadata.finalizers.is_empty()
            }
            Self::Got(_)
            | Self::Deleted(Err(_))
            | Self::FinalizersSet(Err(_))
            | Self::OwnedFound(_)
            | Self::Quarantined(_)
            | Self::Rewound(_) => false,
        }
    }

    /// Why it came to nothing, where it did.
    pub fn error(&self) -> Option<String> {
        match self {
            Self::Got(answer) => answer.as_ref().err().map(ToString::to_string),
            Self::FinalizersSet(answer) => answer.as_ref().err().map(ToString::to_string),
            Self::Deleted(answer) => answer.as_ref().err().map(ToString::to_string),
            Self::OwnedFound(answer) => answer.as_ref().err().map(|failure| match failure {
                OwnedFailure::Store(failure) => failure.message.clone(),
                OwnedFailure::Cluster(error) => error.to_string(),
            }),
            Self::Quarantined(answer) | Self::Rewound(answer) => {
                answer.as_ref().err().map(|failure| failure.message.clone())
            }
        }
    }
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// Begin.
    Start,
    /// Time has passed; see [`Controller::deadline`](super::controller::Controller::deadline).
    Timer,
    /// Begin nothing new.
    Stop,
    /// Answer to [`Output::Load`].
    Loaded(Result<Saved, StoreFailure>),
    /// Answer to [`Output::Probe`].
    Probed(Result<ResourceVersion, ClusterError>),
    /// Answer to [`Output::List`].
    Page(Result<Page, ClusterError>),
    /// Answer to [`Output::ReadPageRows`].
    PageRows(Result<Vec<RowState>, StoreFailure>),
    /// Answer to [`Output::Scan`].
    Scanned(Result<Vec<RowState>, StoreFailure>),
    /// Answer to [`Output::Rewind`].
    Rewound(Result<(), StoreFailure>),
    /// From the watch; nothing follows an error.
    Watch(Result<WatchEvent, ClusterError>),
    /// The watch ended in peace.
    WatchEnded,
    /// Answer to [`Output::ReadRows`].
    Rows(Ticket, Result<Vec<RowState>, StoreFailure>),
    /// Answer to [`Output::Write`].
    Written(Ticket, Result<Vec<Outcome>, StoreFailure>),
    /// Answer to [`Output::Effect`].
    Effect(Uid, EffectDone),
    /// Answer to [`Output::SaveCheckpoint`].
    CheckpointSaved(Result<CheckpointOutcome, StoreFailure>),
    /// Answer to [`Output::ReleaseQuarantine`].
    QuarantineReleased(Uid, ResourceVersion, Result<(), StoreFailure>),
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Output {
    /// Read what an earlier run saved.
    Load,
    /// Ask for the version of the newest list, without its items.
    Probe,
    /// Ask for a page of the list.
    List {
        /// Where it begins.
        continue_token: Option<String>,
        /// Most objects.
        limit: u32,
    },
    /// Read the rows of a page.
    ReadPageRows(Vec<Uid>),
    /// Read a page of row states.
    Scan {
        /// The last row of the page before.
        after: Option<Arrival>,
        /// Most rows.
        limit: u32,
    },
    /// Put the versions beyond this one aside that the history holds; answered like a rewind.
    SetHistoryAside(ResourceVersion),
    /// Forget the versions of these rows.
    Rewind(Vec<Uid>),
    /// Begin to watch after this version; replaces a watch that is still open.
    Watch(ResourceVersion),
    /// Close the watch.
    StopWatch,
    /// Read rows.
    ReadRows(Ticket, Vec<Uid>),
    /// Project and write a batch.
    Write(Ticket, Vec<RowWrite<Object>>),
    /// Do something for one object.
    Effect(Uid, Effect),
    /// Save how far events are stored, but over no mark other than the known one.
    SaveCheckpoint {
        /// How far, or a mark.
        checkpoint: Checkpoint,
        /// See [`Checkpoints::save_checkpoint`](kindex_store::Checkpoints::save_checkpoint).
        known_mark: Option<ResourceVersion>,
    },
    /// Remove the record of an object that is stored now, unless it is of a newer version.
    ReleaseQuarantine(Uid, ResourceVersion),
    /// Record a Kubernetes event; nobody waits for it.
    Notify(Notice),
}
