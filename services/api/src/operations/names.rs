//! Looks up what has a name in SQL. Every creation needs this, for its own name and for those in its fields, so that
//! concurrent look-ups share one statement.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kindex_model::kind::Kind;
use kindex_query::{Life, Stored};
use kindex_store::{MetadataStorage, StoreError};
use tokio::sync::oneshot;

use super::{ObjectKey, Reason, Refusal, refusal};

/// Names that are asked for in one statement at most.
const TOGETHER_MAX: usize = 200;

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
#[derive(Clone, Default)]
pub(super) struct Names(Arc<Mutex<HashMap<&'static str, Line>>>);

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
        let (answer, answered) = oneshot::channel();
        let (kind, name) = (key.resource.kind, (key.namespace.to_owned(), key.name.to_owned()));
        if self.join(kind, name, answer) {
            let (names, store) = (self.clone(), store.clone());
            // A task of its own: the client that came first may leave, and others wait behind it.
            tokio::spawn(async move { names.look_up(kind, &*store).await });
        }
        let stopped = |_| Refusal::try_again(Reason::ServiceUnavailable, "the server is shutting down; try again");
        answered.await.map_err(stopped)?
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    async fn look_up(&self, kind: &'static Kind, store: &dyn MetadataStorage) {
        loop {
            let (names, answers): (Vec<_>, Vec<_>) = self.leave(kind).into_iter().unzip();
            if names.is_empty() {
                return;
            }
            let together = found(kind, store, &names).await;
            // A row that cannot be read concerns only those who ask for its name.
            let is_one_of_many = matches!(together, Err(StoreError::Corrupt { .. })) && names.len() > 1;
            let together = together.map_err(|error| refusal::of_query(&error));
            for (name, answer) in names.iter().zip(answers) {
                let row = match &together {
                    Err(_) if is_one_of_many => found_alone(kind, store, name).await,
                    Err(refusal) => Err(refusal.clone()),
                    Ok(rows) => Ok(rows.get(name).cloned()),
                };
                // Whoever has left meanwhile needs no answer.
                let _gone = answer.send(row);
            }
        }
    }
}

async fn found_alone(kind: &Kind, store: &dyn MetadataStorage, name: &Name) -> Result<Option<Stored>, Refusal> {
    let found = found(kind, store, std::slice::from_ref(name)).await;
    let rows = found.map_err(|error| refusal::of_query(&error))?;
    Ok(rows.into_values().next())
}

/// What has each of these names and is not deleted.
async fn found(kind: &Kind, store: &dyn MetadataStorage, names: &[Name]) -> Result<HashMap<Name, Stored>, StoreError> {
    let rows = match names {
        // Quicker for one.
        [(namespace, name)] => store.get_by_name(kind, namespace, name).await?.into_iter().collect(),
        _ => store.newest_by_names(kind, names).await?,
    };
    let open = rows.into_iter().filter(|row| row.life != Life::Deleted);
    let by_name = open.map(|row| {
        let metadata = &row.object.metadata;
        ((metadata.namespace.clone(), metadata.name.clone()), row)
    });
    Ok(by_name.collect())
}
