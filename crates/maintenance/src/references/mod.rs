//! Compares references on both sides: what the declared fields of all objects name, live and archived, what references
//! these objects have, and the rows of archived ones. Other services are asked about all their objects of the kinds
//! that fields may name: some may lack a reference, and some may have one that was left behind. What differs is read
//! again before it is reported, because changes in flight are not differences. Memory: all objects of the graph,
//! without their texts; of other services, the names of a kind, and the objects that have references of ours or that
//! fields name.
//!
//! `compare` decides and is pure; `read` reads both sides, and `elsewhere` asks other services.

mod compare;

mod elsewhere;

mod read;

use std::collections::BTreeSet;
use std::time::Duration;

use kindex_model::kind::Registry;
use kindex_model::reference_name::ReferenceName;
use kindex_store::progress::Progress;
use serde::Serialize;
use tokio::time::sleep;

use crate::retries::RetryBudget;
use crate::sides::{RepairError, Sides};
pub use compare::{Class, Difference};
use compare::{Everything, compare};
use elsewhere::PeersState;

/// How often both sides are read, at most.
const READINGS_MAX: u32 = 5;

/// What was compared, and what differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Live and archived objects.
    pub objects: u64,
    /// References on them.
    pub references: u64,
    /// Whether `kindex deletion` is at work: else nobody places the references of declared fields.
    pub placed: bool,
    /// What stood still and differs.
    pub differences: Vec<Difference>,
    /// What changed at every reading.
    pub unsettled: u64,
    /// References of holders of other services, each with the object that has it, as `namespace/name` of a kind.
    #[serde(skip)]
    pub foreign: Vec<(ReferenceName, ReferencedObject)>,
    /// Why other services have not said which references their objects have.
    #[serde(skip)]
    pub unanswered: Vec<String>,
    /// Why not all objects of other services were read that fields may name.
    #[serde(skip)]
    pub unlisted: Vec<String>,
}

/// An object that has references, or should.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReferencedObject {
    /// Its kind.
    pub kind: &'static str,
    /// Its group.
    pub group: &'static str,
    /// Empty for kinds of the whole cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The references on an object of another service, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedState {
    /// Its uid.
    pub uid: String,
    /// Whether it is being deleted: it takes no new references.
    pub leaving: bool,
    /// The references on it.
    pub references: BTreeSet<ReferenceName>,
}

/// A page of the objects of a kind, as their service lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedPage {
    /// Live and archived ones, each by its namespace, which is empty for kinds of the whole cluster, and its name.
    pub objects: Vec<(String, String)>,
    /// Fetches the next page; `None` after the last one.
    pub next: Option<String>,
}

/// Why another service has not said what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFailure {
    /// For people.
    pub why: String,
    /// Whether nothing came from it at all. It is asked nothing more then.
    pub is_silent: bool,
}

/// Asks other services about their objects.
pub trait PeerApi: Sync {
    /// What an object has; `None` where its service says that it has no such object.
    ///
    /// # Errors
    /// Why its service does not say so.
    fn look(&self, at: &ReferencedObject) -> impl Future<Output = Result<Option<ReferencedState>, PeerFailure>> + Send;

    /// A page of the objects of a kind; the first one without a token.
    ///
    /// # Errors
    /// Why its service does not list them.
    fn list(
        &self,
        group: &'static str,
        kind: &'static str,
        token: Option<&str>,
    ) -> impl Future<Output = Result<ListedPage, PeerFailure>> + Send;
}

/// Compares the references of all kinds.
///
/// # Guarantees
/// Read only. A difference was found in two readings, `settle` apart, between which neither of the two objects changed.
/// Of an object of another service, this means that it is still the same object.
///
/// # Errors
/// If the cluster or the database does not answer within the retry budget. Another service that does not answer is
/// none.
pub async fn verify(
    sides: &Sides,
    registry: &Registry,
    others: &impl PeerApi,
    settle: Duration,
    retry_budget: RetryBudget,
    progress: &dyn Progress,
) -> Result<Report, RepairError> {
    let mut others_state = PeersState::default();
    let mut everything = read::everything(sides, registry, others, &mut others_state, retry_budget, progress).await?;
    let mut before = compare(&everything);
    let mut confirmed: Vec<Difference> = Vec::new();
    let mut unsettled = 0;
    for _ in 1..READINGS_MAX {
        if before.iter().all(|difference| confirmed.contains(difference)) {
            break;
        }
        sleep(settle).await;
        everything = read::everything(sides, registry, others, &mut others_state, retry_budget, progress).await?;
        let after = compare(&everything);
        confirmed = after
            .iter()
            .filter(|difference| before.contains(difference))
            .cloned()
            .collect();
        let moving = after.len() - confirmed.len();
        unsettled = u64::try_from(moving).unwrap_or(u64::MAX);
        before = after;
        if moving == 0 {
            break;
        }
    }
    progress.end();
    Ok(report(&everything, confirmed, unsettled))
}

fn report(everything: &Everything, differences: Vec<Difference>, unsettled: u64) -> Report {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let objects = || everything.objects.values();
    Report {
        objects: count(everything.objects.len()),
        references: count(objects().map(|object| object.references.len()).sum()),
        placed: everything.is_placed(),
        differences,
        unsettled,
        foreign: everything.foreign(),
        unanswered: everything.unanswered.iter().cloned().collect(),
        unlisted: everything.unlisted.iter().cloned().collect(),
    }
}
