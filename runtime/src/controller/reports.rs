//! Kubernetes warning events about problems that a write found in an object.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use kindex_kube_client::{Notice, Target};
use kindex_model::kind::Problem;
use kindex_model::object::Uid;

use super::entry::Entry;
use super::environment::Environment;
use crate::message::Output;

/// Most uids whose reported problems are remembered; beyond it a report may repeat.
const REPORTED_MAX: usize = 10_000;

/// Hash of the problems that were last reported for a uid.
#[derive(Debug, Default)]
pub(super) struct Reports(BTreeMap<Uid, u64>);

impl Reports {
    /// Creates a warning event for each archived object that this one replaced.
    pub(super) fn replaced(env: &mut Environment, uid: &Uid, entry: &Entry, replaced: &[Uid]) {
        for old in replaced {
            let kind = env.kind;
            tracing::warn!(kind = kind.name, object = %entry.name, %uid, archived = %old,
                "The name of an archived object was taken in the cluster: the archived object is replaced");
            let Some(object) = entry.newest().object() else {
                continue;
            };
            env.emit(Output::Notify(Notice {
                about: Target::of(object),
                warning: true,
                reason: "ArchivedObjectReplaced",
                message: format!(
                    "took the name of the archived object {old}, which stays stored without it: `kindex restore {} \
                     --uid {old} --as NEW-NAME` creates it again under another name",
                    kind.singular
                ),
            }));
        }
    }

    /// Creates a warning event for what the projection could not read, and repeats it only if that changes.
    pub(super) fn problems(&mut self, env: &mut Environment, uid: &Uid, entry: &Entry, problems: &[Problem]) {
        if problems.is_empty() {
            self.forget(uid);
            return;
        }
        env.metrics.problems.inc();
        let lines: Vec<String> = problems
            .iter()
            .map(|problem| match problem.path.as_str() {
                "" => problem.message.clone(),
                path => format!("{path}: {}", problem.message),
            })
            .collect();
        let mut hasher = DefaultHasher::new();
        lines.hash(&mut hasher);
        let hash = hasher.finish();
        if self.0.insert(uid.clone(), hash) == Some(hash) {
            return;
        }
        if self.0.len() > REPORTED_MAX {
            self.0.pop_first();
        }
        let Some(object) = entry.newest().object() else {
            return;
        };
        env.emit(Output::Notify(Notice {
            about: Target::of(object),
            warning: true,
            reason: "ProjectionIncomplete",
            message: format!(
                "stored completely, but not every column could be read: {}",
                lines.join("; ")
            ),
        }));
    }

    /// The object is gone, or has no problem any more.
    pub(super) fn forget(&mut self, uid: &Uid) {
        self.0.remove(uid);
    }
}
