//! Looks up what has a name in SQL. Every creation needs this, for its own name and for those in its fields, so that
//! concurrent look-ups share one statement.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{StreamExt as _, stream};
use kindex_kube_api::names::{dns_label_problem, subdomain_problem};
use kindex_model::kind::Kind;
use kindex_query::Stored;
use kindex_store::{MetadataStorage, StoreError};
use tokio::sync::{Semaphore, oneshot};

use super::{ObjectKey, Reason, Refusal, refusal};

/// Names that are asked for in one statement at most.
const TOGETHER_MAX: usize = 200;
/// Statements for one name each, at a time and of all kinds, after those for many failed.
const ALONE_MAX: usize = 8;

/// Namespace and name.
type Name = (String, String);
/// Where it is said what has a name.
type Answer = oneshot::Sender<Result<Option<Stored>, Refusal>>;

/// Who waits for the next statement of a kind.
#[derive(Default)]
struct Line {
    waiting: Vec<(Name, Answer)>,
    /// Whether a statement is under way; the next one begins when it ends.
    is_moving: bool,
}

/// The lines, by the tables of the kinds.
#[derive(Clone)]
pub(super) struct Names {
    lines: Arc<Mutex<HashMap<&'static str, Line>>>,
    alone: Arc<Semaphore>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            lines: Arc::default(),
            alone: Arc::new(Semaphore::new(ALONE_MAX)),
        }
    }
}

impl Names {
    /// What has a name in SQL and is not deleted.
    ///
    /// # Guarantees
    /// The statement that answers begins after the question.
    pub(super) async fn find(
        &self,
        store: &Arc<dyn MetadataStorage>,
        key: &ObjectKey<'_>,
    ) -> Result<Option<Stored>, Refusal> {
        if !is_possible(key.namespace, key.name) {
            return Ok(None);
        }
        let (answer, answered) = oneshot::channel();
        let (kind, name) = (key.resource.kind, (key.namespace.to_owned(), key.name.to_owned()));
        if self.join(kind, name, answer) {
            let (names, store) = (self.clone(), store.clone());
            // A task of its own: the client that came first may leave, and others wait behind it.
            tokio::spawn(async move { names.look_up(kind, store).await });
        }
        let broke_off = |_| {
            Refusal::try_again(
                Reason::ServiceUnavailable,
                "the look-up of the name broke off; try again",
            )
        };
        answered.await.map_err(broke_off)?
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins a line; whether it stood still, so that it has to be moved now.
    fn join(&self, kind: &Kind, name: Name, answer: Answer) -> bool {
        let mut lines = self.lock();
        let line = lines.entry(kind.table).or_default();
        line.waiting.push((name, answer));
        !std::mem::replace(&mut line.is_moving, true)
    }

    /// Those at the head of a line. Where nobody waits, it stands still.
    fn leave(&self, kind: &Kind) -> Vec<(Name, Answer)> {
        let mut lines = self.lock();
        let line = lines.entry(kind.table).or_default();
        let behind = line.waiting.split_off(line.waiting.len().min(TOGETHER_MAX));
        let ahead = std::mem::replace(&mut line.waiting, behind);
        line.is_moving = !ahead.is_empty();
        ahead
    }

    async fn look_up(&self, kind: &'static Kind, store: Arc<dyn MetadataStorage>) {
        let _moving = Moving { names: self, kind };
        // One commit often answers many requests at once: after a yield, they share the first statement.
        tokio::task::yield_now().await;
        loop {
            let batch = self.leave(kind);
            if batch.is_empty() {
                return;
            }
            let names: Vec<Name> = batch.iter().map(|(name, _)| name.clone()).collect();
            match found(kind, &*store, &names).await {
                Ok(rows) => {
                    for (name, answer) in batch {
                        send(answer, Ok(rows.get(&name).cloned()));
                    }
                }
                // A row that cannot be read concerns only those who ask for its name. Nobody waits for them.
                Err(StoreError::Corrupt { .. }) if names.len() > 1 => {
                    tokio::spawn(answer_each(kind, store.clone(), self.alone.clone(), batch));
                }
                Err(error) => {
                    let refusal = refusal::of_query(&error);
                    for (_, answer) in batch {
                        send(answer, Err(refusal.clone()));
                    }
                }
            }
        }
    }
}

/// A line whose statements are under way.
struct Moving<'a> {
    names: &'a Names,
    kind: &'a Kind,
}

impl Drop for Moving<'_> {
    /// After a panic, those who wait are answered that it broke off, and the next one moves the line again.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.names.lock().remove(self.kind.table);
        }
    }
}

fn send(answer: Answer, row: Result<Option<Stored>, Refusal>) {
    // Whoever has left meanwhile needs no answer.
    let _gone = answer.send(row);
}

/// Looks up each name with a statement of its own.
async fn answer_each(
    kind: &'static Kind,
    store: Arc<dyn MetadataStorage>,
    alone: Arc<Semaphore>,
    batch: Vec<(Name, Answer)>,
) {
    let mut waiting: HashMap<Name, Vec<Answer>> = HashMap::new();
    for (name, answer) in batch {
        waiting.entry(name).or_default().push(answer);
    }
    let answers = stream::iter(waiting).for_each_concurrent(ALONE_MAX, |(name, answers)| {
        let (store, alone) = (&store, &alone);
        async move {
            let _permit = alone.acquire().await.expect("it is never closed");
            let found = found(kind, &**store, std::slice::from_ref(&name)).await;
            let row = found.map(|rows| rows.into_values().next());
            let row = row.map_err(|error| refusal::of_query(&error));
            for answer in answers {
                send(answer, row.clone());
            }
        }
    });
    answers.await;
}

/// Whether an object can have this name. The cluster refuses a creation with any other; it may have megabytes, and must
/// not share a statement with names of other clients.
fn is_possible(namespace: &str, name: &str) -> bool {
    subdomain_problem(name).is_none() && (namespace.is_empty() || dns_label_problem(namespace).is_none())
}

/// What has each of these names and is not deleted.
async fn found(kind: &Kind, store: &dyn MetadataStorage, names: &[Name]) -> Result<HashMap<Name, Stored>, StoreError> {
    match names {
        // Quicker for one.
        [name] => {
            let found = store.get_by_name(kind, &name.0, &name.1).await?;
            Ok(found.map(|row| (name.clone(), row)).into_iter().collect())
        }
        _ => store.get_by_names(kind, names).await,
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;
    use crate::operations::token::tests::KIND;

    /// As if a line stood still for ever.
    #[test]
    fn after_a_panic_a_line_is_moved_by_the_next_one() {
        let names = Names::default();
        let join = || {
            let (answer, answered) = oneshot::channel();
            let moves = names.join(&KIND, ("default".to_owned(), "a".to_owned()), answer);
            (moves, answered)
        };
        let (moves, mut answered) = join();
        assert!(moves, "it stood still");
        assert!(!join().0, "it moves");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _moving = Moving {
                names: &names,
                kind: &KIND,
            };
            panic!("a statement");
        }));
        assert!(panicked.is_err(), "as planned");
        assert_eq!(
            answered.try_recv().err(),
            Some(TryRecvError::Closed),
            "nobody waits for ever"
        );
        assert!(join().0, "it is moved again");
    }

    #[test]
    fn only_names_that_objects_can_have_are_looked_up() {
        let huge = "a".repeat(2 << 20);
        for (namespace, name) in [("", "a"), ("default", "a.b-c"), ("default", "0")] {
            assert!(is_possible(namespace, name), "{namespace}/{name}");
        }
        for (namespace, name) in [("", ""), ("default", "A"), ("a.b", "a"), ("", &*huge), (&huge, "a")] {
            let (namespace_is, name_is) = (namespace.len(), name.len());
            assert!(!is_possible(namespace, name), "{namespace_is} and {name_is} bytes");
        }
    }
}
