//! A step that is to be carried out, and what came of it so far.

use kindex_kube_client::ClusterError;
use kindex_model::reference_name::ReferenceName;

use super::Cluster;
use crate::answers::Swept;
use crate::decide::{Seen, Step};
use crate::object::{Key, Object};
use crate::outside::Said;

/// A step of an object, with the objects as they were seen.
#[derive(Clone, Debug)]
pub struct Task {
    /// The object that it was decided on.
    pub object: Object,
    /// What is to be done.
    pub step: Step,
    /// The object on which a reference is placed or released.
    pub target: Option<Object>,
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
    /// Who holds the object out of the archive.
    pub swept: Option<Swept>,
    /// What came of the cleanup outside, where it was called.
    pub said: Option<Said>,
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
    result.map(|object| outcome.know(object))
}

/// Reads an object again; nothing where another one has its name.
pub(super) async fn read(
    cluster: &Cluster,
    seen: &Seen,
    outcome: &mut Outcome,
) -> Result<Option<Object>, ClusterError> {
    let found = cluster.get(&seen.key).await?;
    if let Some(found) = &found {
        outcome.know(found.clone());
    }
    let found = found.filter(|found| found.uid == seen.uid);
    if found.is_none() {
        outcome.gone.push((seen.key.clone(), seen.uid.clone()));
    }
    Ok(found)
}

/// Whether all that its fields name bear the reference of a holder.
pub(super) async fn holds_all(cluster: &Cluster, holder: &Object, outcome: &mut Outcome) -> Result<bool, ClusterError> {
    let Some(name) = holder.reference_name() else {
        return Ok(false);
    };
    for edge in &holder.edges {
        let Some(found) = cluster.get(&edge.target).await? else {
            return Ok(false);
        };
        let bears = found.references.contains(&name);
        outcome.know(found);
        if !bears {
            return Ok(false);
        }
    }
    Ok(true)
}
