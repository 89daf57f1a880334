//! The cleanup of what an object has outside, in the cluster or archived. It is called with the object as it is now,
//! ends by its deadline, and harms nobody else.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kindex_kube_client::{ClusterError, ReadApi as _};
use kindex_model::causes::chain;
use kindex_model::deletion::Phase;
use kindex_model::kind::Kind;
use kindex_model::object::Object as Text;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::outcome::{Outcome, Task};
use super::{Cluster, failed, name_of};
use crate::cleanup::{Answer, Cleanup, Cleanups, Deleted};
use crate::cleanup_states::{CallOutcome, is_due};
use crate::kinds;
use crate::object::{KindName, Object};

/// Calls of a kind at a time, for objects of the cluster and for archived ones each.
const CALLS_AT_A_TIME: usize = 64;
/// A call has its turn no longer than this, whatever its cleanup says: those that never end would keep all turns.
const DEADLINE_MAX: Duration = Duration::from_hours(1);

/// The cleanup of a kind, and whose turn it is.
#[derive(Clone)]
struct Turns {
    cleanup: Arc<dyn Cleanup>,
    turns: Arc<Semaphore>,
    /// Those of archived objects, which are many at times and keep none of the cluster waiting.
    archived: Arc<Semaphore>,
}

/// The cleanups of a cluster.
#[derive(Clone, Default)]
pub(super) struct Callable {
    of: BTreeMap<KindName, Turns>,
}

impl Callable {
    pub(super) fn new(cleanups: &Cleanups) -> Self {
        let of = cleanups.all().map(|(kind, cleanup)| {
            let turns = Turns {
                cleanup: cleanup.clone(),
                turns: Arc::new(Semaphore::new(CALLS_AT_A_TIME)),
                archived: Arc::new(Semaphore::new(CALLS_AT_A_TIME)),
            };
            (kinds::name_of(kind), turns)
        });
        Self { of: of.collect() }
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &KindName> {
        self.of.keys()
    }
}

pub(super) async fn clean_up(cluster: &Cluster, task: &Task, outcome: &mut Outcome) -> Result<(), ClusterError> {
    let key = &task.object.key;
    let Some(Turns { cleanup, turns, .. }) = cluster.cleanups.of.get(&key.kind) else {
        return Ok(());
    };
    let _turn = turns.acquire().await.expect("turns never end");
    let kind = cluster.kind(key);
    let Some(text) = cluster.api.find(kind, &name_of(key)).await? else {
        outcome.gone.push((key.clone(), task.object.uid.clone()));
        return Ok(());
    };
    let found = cluster.kinds.read(kind, &text);
    let may_be_called = found.uid == task.object.uid && is_due(&found);
    let deleted = deleted(kind, &found, &text, false);
    outcome.know(found);
    if may_be_called {
        outcome.cleanup = Some(call_with(&**cleanup, deleted).await);
    }
    Ok(())
}

impl Cluster {
    /// The same, with what removes what objects have outside.
    #[must_use]
    pub fn with_cleanups(self, cleanups: &Cleanups) -> Self {
        Self {
            cleanups: Callable::new(cleanups),
            ..self
        }
    }

    /// Calls the cleanup of a tombstone, once it is its turn. Nothing where it does not drain any more, or the cluster
    /// has the object again.
    pub(crate) async fn clean_up_archived(
        &self,
        kind: &KindName,
        uid: &str,
    ) -> Result<Option<CallOutcome>, ClusterError> {
        let (Some(Turns { cleanup, archived, .. }), Some(archive)) =
            (self.cleanups.of.get(kind), self.archive.as_deref())
        else {
            return Ok(None);
        };
        let _turn = archived.acquire().await.expect("turns never end");
        let text = archive.tombstone_text(kind, uid).await;
        let Some(text) = text.map_err(|error| failed(&error))? else {
            return Ok(None);
        };
        let kind = self.kinds.get(kind).expect("what has a tombstone is of the graph");
        let found = self.kinds.read(kind, &text);
        let in_cluster = self.get(&found.key).await?;
        let is_there_again = in_cluster.is_some_and(|other| other.uid == found.uid);
        if is_there_again || found.phase != Some(Phase::Draining) {
            return Ok(None);
        }
        let deleted = deleted(kind, &found, &text, true);
        Ok(Some(call_with(&**cleanup, deleted).await))
    }
}

/// # Errors
/// A text that is too deep to be read.
fn deleted(kind: &'static Kind, found: &Object, text: &Text, archived: bool) -> Result<Deleted, serde_json::Error> {
    Ok(Deleted {
        kind,
        namespace: found.key.namespace.to_string(),
        name: found.key.name.to_string(),
        uid: found.uid.clone(),
        archived,
        object: serde_json::from_str(text.text())?,
    })
}

/// A cleanup that is called without the object would find nothing to remove, and say so.
async fn call_with(cleanup: &dyn Cleanup, deleted: Result<Deleted, serde_json::Error>) -> CallOutcome {
    match deleted {
        Ok(deleted) => call(cleanup, &deleted).await,
        Err(error) => CallOutcome::Failed(format!("the object cannot be read: {error}")),
    }
}

/// One call: an answer, an error, a panic, or nothing in time.
async fn call(cleanup: &dyn Cleanup, deleted: &Deleted) -> CallOutcome {
    let called = async {
        let deadline = cleanup.deadline().min(DEADLINE_MAX);
        let answered = timeout(deadline, cleanup.clean_up(deleted)).await;
        answered.map_err(|_elapsed| format!("no answer in {deadline:?}"))
    };
    match AssertUnwindSafe(called).catch_unwind().await {
        Ok(Ok(Ok(Answer::Gone))) => CallOutcome::Gone,
        Ok(Ok(Ok(Answer::Pending { what, again_after }))) => CallOutcome::Pending(what, again_after),
        Ok(Ok(Err(error))) => CallOutcome::Failed(chain(&*error)),
        Ok(Err(late)) => CallOutcome::Failed(late),
        Err(panic) => CallOutcome::Failed(format!("it panicked: {}", said_in(&*panic))),
    }
}

fn said_in(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::Value;

    use super::*;
    use crate::cleanup::CleanupError;
    use crate::fixture::CLUSTER;

    /// Never answers, and would never have to.
    struct Endless;

    #[async_trait]
    impl Cleanup for Endless {
        async fn clean_up(&self, _: &Deleted) -> Result<Answer, CleanupError> {
            std::future::pending().await
        }

        fn deadline(&self) -> Duration {
            Duration::MAX
        }
    }

    /// As if its cleanup had nothing to remove.
    #[tokio::test]
    async fn an_object_too_deep_to_be_read_is_not_cleaned_up() {
        let unread = serde_json::from_str::<Value>(&"[".repeat(200)).expect_err("too deep");
        let outcome = call_with(&Endless, Err(unread)).await;
        assert!(
            matches!(&outcome, CallOutcome::Failed(why) if why.starts_with("the object cannot be read: recursion limit")),
            "{outcome:?}"
        );
    }

    /// Otherwise 64 of these keep every other object of their kind from being cleaned up.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_may_take_for_ever_ends_all_the_same() {
        let deleted = Deleted {
            kind: &CLUSTER,
            namespace: String::new(),
            name: "c".to_owned(),
            uid: "u".to_owned(),
            archived: true,
            object: Value::Null,
        };
        let outcome = call(&Endless, &deleted).await;
        assert_eq!(outcome, CallOutcome::Failed("no answer in 3600s".to_owned()));
    }
}
