//! What a program implements for kinds whose objects have something outside of the cluster: machines, accounts, files.
//! Calls nothing itself.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use async_trait::async_trait;
use kindex_model::kind::{Kind, Registry};
use serde_json::Value;

/// How long a call may take where a cleanup says nothing else.
const DEADLINE: Duration = Duration::from_secs(60);

/// Why a cleanup did not come to an answer.
pub type CleanupError = Box<dyn Error + Send + Sync>;

/// An object that is being deleted, as it was read right before the call.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// Its kind.
    pub kind: &'static Kind,
    /// Empty for cluster-wide kinds.
    pub namespace: String,
    /// Name within the namespace.
    pub name: String,
    /// Who it is: another object may get its name later, and never its uid.
    pub uid: String,
    /// Whether it was archived before it was deleted. Then another object may have its name already.
    pub archived: bool,
    /// All of it, in the version that its kind declares: `object["spec"]["machine"]`.
    pub object: Value,
}

/// What a cleanup says of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing of it is left outside, as a read from there has confirmed.
    Gone,
    /// Something is left, or may be left. The cleanup is called again.
    Pending {
        /// What is waited for. People read it in events: `machine m-17 shuts down`.
        what: String,
        /// When to ask again, from a second to a day; `None` leaves that to the service, which waits longer each time.
        again_after: Option<Duration>,
    },
}

/// Removes what the objects of a kind have outside.
///
/// # Expected flow
/// Once an object is deleted, nothing refers to it, what it owns is gone and the finalizers of other controllers are
/// off, it is in phase `DRAINING`, and its cleanup is called. The cleanup asks for the removal where nobody did so
/// before, reads what is left, and says so. It is called again until it says [`Answer::Gone`]; after an error, the time
/// in between doubles up to a minute. Only then are the references of the object released, and the object goes.
///
/// An object that leaves for the archive is not deleted, and no cleanup is called. One that is deleted there is cleaned
/// up in the same way, except that nobody has a finalizer on it any more.
///
/// # Guarantees
/// - Of an object, one call is under way at a time in the process that works.
/// - A call that takes too long, fails or panics keeps its object and no other one. For each kind, 64 calls are under
///   way at most; others wait for their turn, which comes however many calls take too long.
///
/// # Assumptions
/// - It is idempotent. What came of a call is unknown after a crash, and the next process calls it again, also for an
///   object of which nothing is left. A former process that is cut off may still be in its last call.
/// - It may be dropped at any `await`: when its deadline passes, and when the service stops.
/// - It does not block its thread: `tokio::task::spawn_blocking` is for that.
/// - What an object has outside is found by what the object says, or by its uid: nothing else is left after a crash.
///   The name alone does for a kind whose objects are never archived: where [`Deleted::archived`] is set, another
///   object may have that name, and still need what it has outside.
/// - Nothing is created outside for an object before it has the finalizer `<group>/deletion`, nor once it has a
///   deletion timestamp.
///
/// # Errors
/// Whatever keeps it from an answer. People read the text in events: it has no secrets.
///
/// # Example
/// ```
/// use std::path::PathBuf;
///
/// use kindex_deletion::cleanup::{Answer, Cleanup, CleanupError, Deleted, async_trait};
///
/// /// Each object has a directory of its own.
/// struct Directories(PathBuf);
///
/// #[async_trait]
/// impl Cleanup for Directories {
///     async fn clean_up(&self, deleted: &Deleted) -> Result<Answer, CleanupError> {
///         let directory = self.0.join(&deleted.uid);
///         if directory.try_exists()? {
///             std::fs::remove_dir_all(&directory)?;
///         }
///         match directory.try_exists()? {
///             false => Ok(Answer::Gone),
///             true => Ok(Answer::Pending { what: format!("{} is there", directory.display()), again_after: None }),
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Cleanup: Send + Sync {
    /// Removes what an object has outside, as far as that is possible now, and says what is left.
    async fn clean_up(&self, deleted: &Deleted) -> Result<Answer, CleanupError>;

    /// After which time a call is dropped and counts as failed; a minute. No call has longer than an hour.
    fn deadline(&self) -> Duration {
        DEADLINE
    }
}

/// The cleanups of a program.
#[derive(Clone, Default)]
pub struct Cleanups {
    of: Vec<(&'static Kind, Arc<dyn Cleanup>)>,
}

/// A cleanup that is never called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCleanup {
    /// It is for a kind of somebody else.
    #[error("the kind {0} has a cleanup and is not in the registry")]
    Unknown(&'static str),
    /// Nothing waits for its objects, and they wait for nothing.
    #[error("the kind {0} has a cleanup, and no reference that a deletion waits for")]
    OutOfGraph(&'static str),
    /// There is another one.
    #[error("the kind {0} has two cleanups")]
    Twice(&'static str),
}

impl InvalidCleanup {
    /// What to do.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "name a kind of the registry that the program runs with",
            Self::OutOfGraph(_) => "declare a reference with on_delete or owned in crds.toml, of the kind or to it",
            Self::Twice(_) => "let one of them do all of it",
        }
    }
}

impl Cleanups {
    /// None: no object has anything outside.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same, with that of one more kind.
    #[must_use]
    pub fn with(mut self, kind: &'static Kind, cleanup: impl Cleanup + 'static) -> Self {
        self.of.push((kind, Arc::new(cleanup)));
        self
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (&'static Kind, &Arc<dyn Cleanup>)> {
        self.of.iter().map(|(kind, cleanup)| (*kind, cleanup))
    }

    /// Whether each of them is for one kind of the graph.
    ///
    /// # Errors
    /// The first that is never called.
    pub fn check(&self, registry: &Registry) -> Result<(), InvalidCleanup> {
        for (at, (kind, _)) in self.of.iter().enumerate() {
            let is_same = |other: &Kind| other.group == kind.group && other.name == kind.name;
            let Some(known) = registry.kinds.iter().find(|other| is_same(other)) else {
                return Err(InvalidCleanup::Unknown(kind.name));
            };
            if self.of[..at].iter().any(|(other, _)| is_same(other)) {
                return Err(InvalidCleanup::Twice(kind.name));
            }
            if !registry.is_of_graph(known) {
                return Err(InvalidCleanup::OutOfGraph(kind.name));
            }
        }
        Ok(())
    }
}

/// Names the kinds: what a cleanup is, only it knows.
impl fmt::Debug for Cleanups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.of.iter().map(|(kind, _)| kind.name))
            .finish()
    }
}
