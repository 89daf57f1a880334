//! A step that is to be carried out, and what came of it so far.

use kindex_kube_client::ClusterError;
use kindex_model::object::ResourceVersion;
use kindex_model::reference_name::ReferenceName;

use super::Cluster;
use crate::answers::Swept;
use crate::cleanup_states::CallOutcome;
use crate::decide::{Seen, Step};
use crate::object::{Key, Object};
use crate::targets::Answer;

/// A step of an object, with the objects as they were seen. Of many that place a reference on the same target, or
/// release one, several do in one write.
#[derive(Clone, Debug)]
pub struct Task {
    /// The object that it was decided on.
    pub object: Object,
    /// Other objects whose step is the same, with their reference.
    pub others: Vec<Object>,
    /// What is to be done.
    pub step: Step,
    /// The object on which a reference is placed or released.
    pub target: Option<Object>,
}

impl Task {
    /// All objects whose step it is.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        std::iter::once(&self.object).chain(&self.others)
    }

    /// The references of all of them.
    pub(super) fn references(&self) -> Vec<String> {
        let names = self.objects().filter_map(Object::reference_name);
        names.map(|name| name.to_string()).collect()
    }
}

/// Whether one write does for the steps of both objects.
pub(crate) fn go_together(one: (&Object, &Step), other: (&Object, &Step)) -> bool {
    match (one.1, other.1) {
        (Step::Place { target, .. }, Step::Place { target: same, .. }) => target == same,
        (Step::Release(target), Step::Release(same)) => target == same && one.0.is_leaving() && other.0.is_leaving(),
        _ => false,
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Objects as they are now.
    pub seen: Vec<Object>,
    /// Objects that are gone.
    pub gone: Vec<(Key, String)>,
    /// Why the step has to be tried again after a while; a conflict is no reason.
    pub failed: Option<String>,
    /// References whose holders are neither in the cluster nor archived.
    pub missing: Vec<ReferenceName>,
    /// What the archive has said of an object that it names.
    pub held: Option<(Key, Answer)>,
    /// Whether an archived object from which it was moved holds it still, if that was asked.
    pub has_former: Option<bool>,
    /// Who holds the object out of the archive.
    pub swept: Option<Swept>,
    /// What came of the call of its cleanup, if there was one.
    pub cleanup: Option<CallOutcome>,
    /// The service that did not answer when the target of a field was read.
    pub unanswered: Option<Unanswered>,
    /// What is known of its writes.
    pub writes: Writes,
}

/// What is known of the writes of a step.
#[derive(Debug, Default)]
pub struct Writes {
    /// Objects of ours that were written, by uid, with the versions that the writes have made.
    pub made: Vec<(String, ResourceVersion)>,
    /// References that another service has released from its object.
    pub released: Vec<String>,
    /// Whether somebody else has written what the step was decided on. That may be a process like ours, with the same
    /// step.
    pub is_overtaken: bool,
    /// Whether something may have been taken off, or still be, of which nothing more is known.
    pub is_unclear: bool,
}

/// Another service that does not answer, or refuses.
#[derive(Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Which one, and where.
    pub place: String,
    /// What came instead of an answer.
    pub why: String,
    /// Whether it would answer nothing else either: one that refuses something of one object may answer about others.
    pub is_silent: bool,
}

impl Unanswered {
    pub(super) fn by(place: String, error: &ClusterError) -> Self {
        Self {
            place,
            why: error.to_string(),
            is_silent: error.is_silence(),
        }
    }
}

impl Outcome {
    pub(super) fn know(&mut self, object: Object) {
        match object.is_leaving() && object.finalizers.is_empty() {
            true => self.gone.push((object.key, object.uid)),
            false => self.seen.push(object),
        }
    }
}

pub(super) fn written(result: Result<Object, ClusterError>, outcome: &mut Outcome) -> Result<(), ClusterError> {
    result.map(|object| {
        outcome.writes.made.push((object.uid.clone(), object.version));
        outcome.know(object);
    })
}

/// As [`written`], of a write that takes finalizers off.
pub(super) fn taken_off(result: Result<Object, ClusterError>, outcome: &mut Outcome) -> Result<(), ClusterError> {
    written(sent(result, outcome), outcome)
}

/// What was asked to take something off has ended with this. One that refuses has not done it, and an outage may have
/// come after it was done.
pub(super) fn sent<T>(result: Result<T, ClusterError>, outcome: &mut Outcome) -> Result<T, ClusterError> {
    outcome.writes.is_unclear |= result.as_ref().is_err_and(ClusterError::is_silence);
    result
}

/// Reads an object again; nothing where another one has its name.
pub(super) async fn read(
    cluster: &Cluster,
    seen: &Seen,
    outcome: &mut Outcome,
) -> Result<Option<Object>, ClusterError> {
    let found = cluster.get(&seen.key).await?;
    Ok(learn(seen, found, outcome))
}

/// What a read of an object has found; nothing where another one has its name.
pub(super) fn learn(seen: &Seen, found: Option<Object>, outcome: &mut Outcome) -> Option<Object> {
    if let Some(found) = &found {
        outcome.know(found.clone());
    }
    let found = found.filter(|found| found.uid == seen.uid);
    if found.is_none() {
        outcome.gone.push((seen.key.clone(), seen.uid.clone()));
    }
    found
}

/// Whether all that its fields name have the reference of a holder. An archived object that does not is asked about
/// again.
pub(super) async fn holds_all(cluster: &Cluster, holder: &Object, outcome: &mut Outcome) -> Result<bool, ClusterError> {
    let Some(name) = holder.reference_name() else {
        return Ok(false);
    };
    for edge in &holder.edges {
        let found = cluster.get(&edge.target).await;
        if let Err(error) = &found {
            let peer = cluster.peers.of(&edge.target.kind);
            outcome.unanswered = peer.map(|peer| Unanswered::by(peer.service_description(), error));
        }
        let Some(found) = found? else {
            if cluster.has_reference_in_archive(&edge.target, &name).await? {
                continue;
            }
            outcome.held = Some((edge.target.clone(), Answer::Absent));
            return Ok(false);
        };
        let has_reference = found.references.contains(&name);
        outcome.know(found);
        if !has_reference {
            return Ok(false);
        }
    }
    Ok(true)
}
