//! What the writer, the readers and the maintenance share: the tail, the backlog and the projects of runs.

use std::collections::HashMap;
use std::sync::Mutex;

use sqlx::SqlitePool;
use tokio::sync::Notify;

use crate::domain::{Clock, ProjectName, RunId, nanos};

use super::backlog::Backlog;
use super::error::StoreError;
use super::meter::Meter;
use super::settings::Settings;
use super::statements::chunks;
use super::tail::Tail;
use super::transaction::Effect;
use super::writer::Observer;

/// Projects that are remembered; beyond, all are forgotten.
const PROJECTS_MAX: usize = 100_000;

/// Projects of runs. A deleted run's id may come back in another project, so that what was read before a deletion does
/// not count after it.
#[derive(Debug, Default)]
struct Projects {
    by_run: HashMap<RunId, ProjectName>,
    deletions: u64,
}

/// What is shared.
pub(super) struct Shared {
    pub(super) tail: Tail,
    pub(super) backlog: Backlog,
    projects: Mutex<Projects>,
    pub(super) meter: Meter,
    /// Compaction may have something to do.
    pub(super) wake: Notify,
    clock: Clock,
    enough: u64,
}

impl Shared {
    pub(super) fn new(settings: &Settings, clock: Clock) -> Self {
        Self {
            tail: Tail::new(settings.tail_bytes_max),
            backlog: Backlog::default(),
            projects: Mutex::default(),
            meter: Meter::default(),
            wake: Notify::new(),
            clock,
            enough: settings.compact_points,
        }
    }

    /// The time, in nanoseconds since the epoch.
    pub(super) fn now(&self) -> i64 {
        nanos((self.clock)()).unwrap_or(0)
    }

    /// The project of a run, if it is remembered; else how many runs have been deleted so far.
    pub(super) fn project(&self, run: &RunId) -> Result<ProjectName, u64> {
        self.with_projects(|projects| projects.by_run.get(run).cloned().ok_or(projects.deletions))
    }

    /// Remembers a project that was read after so many deletions.
    pub(super) fn remember_project(&self, run: &RunId, project: ProjectName, deletions: u64) {
        self.with_projects(|projects| {
            if projects.deletions != deletions {
                return;
            }
            if projects.by_run.len() >= PROJECTS_MAX {
                projects.by_run.clear();
            }
            projects.by_run.insert(run.clone(), project);
        });
    }

    fn with_projects<T>(&self, work: impl FnOnce(&mut Projects) -> T) -> T {
        work(&mut self.projects.lock().expect("nothing panics while it has the projects"))
    }

    /// Reads from the file what was in memory when the program ended.
    pub(super) async fn rebuild(&self, readers: &SqlitePool) -> Result<(), StoreError> {
        /// Most bodies have some kilobytes.
        const BODY_BYTES: usize = 4096;
        let now = self.now();
        let mut snapshot = readers.begin().await?;
        for (run, points) in chunks::backlogs(&mut snapshot).await? {
            self.backlog.add(run, points as u64, now);
        }
        for run in chunks::unsealed(&mut snapshot).await? {
            self.backlog.ended(run);
        }
        let budget = self.tail.bytes_max();
        let newest = chunks::newest(&mut snapshot, (budget / BODY_BYTES) as i64).await?;
        let mut bodies = Vec::new();
        let mut bytes = 0;
        for arrival in newest {
            let body = chunks::body(&mut snapshot, arrival).await?.unwrap_or_default();
            bytes += body.len();
            if bytes > budget {
                break;
            }
            bodies.push((arrival, body));
        }
        for (arrival, body) in bodies.into_iter().rev() {
            self.tail.insert(arrival, body.into());
        }
        Ok(())
    }
}

impl Observer for Shared {
    fn committed(&self, effects: Vec<Effect>) {
        let now = self.now();
        for effect in effects {
            match effect {
                Effect::Applied {
                    arrival,
                    run,
                    points,
                    body,
                } => {
                    self.backlog.add(run, points, now);
                    if let Some(body) = body {
                        self.tail.insert(arrival, body);
                    }
                }
                Effect::Ended(run) => self.backlog.ended(run),
                Effect::Resumed(run) => self.backlog.sealed(run),
                Effect::Deleted { run, number } => {
                    self.backlog.empty(number);
                    self.backlog.sealed(number);
                    self.with_projects(|projects| {
                        projects.deletions += 1;
                        projects.by_run.remove(&run);
                    });
                }
                Effect::Compacted { run, points, arrivals } => {
                    self.backlog.remove(run, points, now);
                    self.tail.remove(&arrivals);
                }
            }
        }
        if self.backlog.next(self.enough, now).is_some() {
            self.wake.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::system_clock;

    #[test]
    fn a_project_that_was_read_before_a_deletion_is_not_remembered_after_it() {
        let shared = Shared::new(&Settings::default(), system_clock());
        let run = RunId::new("r");
        let before = shared.project(&run).expect_err("it is not known yet");
        shared.committed(vec![Effect::Deleted {
            run: run.clone(),
            number: 1,
        }]);
        shared.remember_project(&run, ProjectName::new("old"), before);
        let after = shared.project(&run).expect_err("it was deleted");
        shared.remember_project(&run, ProjectName::new("new"), after);
        assert_eq!(shared.project(&run), Ok(ProjectName::new("new")));
    }
}
