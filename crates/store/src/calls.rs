//! The calls to the database in flight: how long each has waited for its answer, and which are late. Knows no statement
//! and no table.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Read,
    Write,
    Commit,
}

/// A call without its number.
#[derive(Clone, Copy, Debug)]
struct CallInFlight {
    step: Step,
    /// The name of a kind, where the call is of one.
    kind: &'static str,
    since: Instant,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// By number, so that the oldest is the first.
    under_way: BTreeMap<u64, CallInFlight>,
    /// When the database last answered a read.
    read_answered: Option<Instant>,
    /// How many calls were reported as late and are still in flight.
    late: usize,
}

/// Where reads are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// By a server, which may be away, or hang.
    Elsewhere,
    /// By a thread of this process, which may have much to read and is never away.
    Here,
}

/// All calls of a store that are under way.
#[derive(Debug)]
pub struct Calls {
    late_after: Duration,
    reads: Reads,
    state: Mutex<State>,
}

/// A call that waits too long.
#[derive(Clone, Copy, Debug)]
pub struct Stalled {
    what: CallInFlight,
    /// So long.
    pub waits: Duration,
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.waits.as_secs();
        write!(f, "the database has not answered {} for {seconds} s", self.what)
    }
}

impl fmt::Display for CallInFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.step {
            Step::Read => "a read",
            Step::Write => "a write",
            Step::Commit => "a commit",
        })?;
        match self.kind {
            "" => Ok(()),
            kind => write!(f, " of {kind}"),
        }
    }
}

impl Calls {
    /// None yet; each may wait so long until it counts as stalled.
    pub(super) fn new(late_after: Duration, reads: Reads) -> Self {
        Self {
            late_after,
            reads,
            state: Mutex::default(),
        }
    }

    /// How long the oldest call has waited; zero where none is under way.
    pub fn oldest(&self) -> Duration {
        self.oldest_at(Instant::now())
    }

    fn oldest_at(&self, now: Instant) -> Duration {
        let state = self.state();
        let oldest = state.under_way.first_key_value();
        oldest.map_or(Duration::ZERO, |(_, call)| now - call.since)
    }

    /// The oldest of the calls that wait too long.
    pub fn stalled(&self) -> Option<Stalled> {
        self.stalled_at(Instant::now())
    }

    fn stalled_at(&self, now: Instant) -> Option<Stalled> {
        let state = self.state();
        let late = state.under_way.values().find(|call| self.is_late(&state, call, now));
        late.map(|&what| Stalled {
            what,
            waits: now - what.since,
        })
    }

    /// Begins a call, `kind` being empty where it is of none. It ends when it is dropped.
    pub(super) fn begin(&self, step: Step, kind: &'static str) -> Call<'_> {
        self.begin_at(step, kind, Instant::now())
    }

    fn begin_at(&self, step: Step, kind: &'static str, since: Instant) -> Call<'_> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.under_way.insert(number, CallInFlight { step, kind, since });
        Call { calls: self, number }
    }

    /// A write that waits has a lock, a disk or other servers to wait for. A read may have much to do: it counts where
    /// no other read was answered meanwhile either, and a server is asked.
    fn is_late(&self, state: &State, call: &CallInFlight, now: Instant) -> bool {
        let is_old = |since: Instant| now - since >= self.late_after;
        is_old(call.since)
            && match call.step {
                Step::Write | Step::Commit => true,
                Step::Read => self.reads == Reads::Elsewhere && state.read_answered.is_none_or(is_old),
            }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call under way.
pub(super) struct Call<'a> {
    calls: &'a Calls,
    number: u64,
}

impl Call<'_> {
    /// From now on it waits for a commit.
    pub(super) fn commits(&self) {
        if let Some(call) = self.calls.state().under_way.get_mut(&self.number) {
            call.step = Step::Commit;
        }
    }

    /// Waits for the answer, and no longer than `limit`. The first of all calls that is late is told in the log, and
    /// so is the last one's answer.
    pub(super) async fn bound<T>(&self, limit: Duration, answer: impl Future<Output = T>) -> Result<T, Elapsed> {
        let mut answer = pin!(answer);
        let late_after = self.calls.late_after.min(limit);
        if let Ok(answer) = timeout(late_after, &mut answer).await {
            self.answered(false, Instant::now());
            return Ok(answer);
        }
        let reported = self.report_late();
        let _counted = reported.then(|| Late(self.calls));
        let answer = timeout(limit.saturating_sub(late_after), answer).await;
        if answer.is_ok() {
            self.answered(reported, Instant::now());
        }
        answer
    }

    fn answered(&self, was_late: bool, now: Instant) {
        let mut state = self.calls.state();
        let Some(call) = state.under_way.get(&self.number).copied() else {
            return;
        };
        if call.step == Step::Read {
            state.read_answered = Some(now);
        }
        if was_late && state.late == 1 {
            let seconds = (now - call.since).as_secs();
            tracing::info!(%call, seconds, "The database answers again");
        }
    }

    /// Returns whether the call is late, and logs the first that is. Logs a call that is not late as slow.
    fn report_late(&self) -> bool {
        let mut state = self.calls.state();
        let now = Instant::now();
        let Some(call) = state.under_way.get(&self.number).copied() else {
            return false;
        };
        let seconds = (now - call.since).as_secs();
        if !self.calls.is_late(&state, &call, now) {
            tracing::warn!(%call, seconds, "A statement takes long: it reads much, and `--explain` shows how");
            return false;
        }
        state.late += 1;
        if state.late == 1 {
            tracing::warn!(%call, seconds, "The database does not answer");
        }
        true
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.calls.state().under_way.remove(&self.number);
    }
}

/// One of the late calls, until it ends in whatever way.
struct Late<'a>(&'a Calls);

impl Drop for Late<'_> {
    fn drop(&mut self) {
        self.0.state().late -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sqlx::mysql::MySqlConnectOptions;
    use tracing::dispatcher::with_default;
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Dispatch, Event, Metadata, Subscriber};

    use super::*;
    use crate::connections::Connections;
    use crate::driver::Driver;
    use crate::mysql::MySqlDriver;
    use crate::sqlite::SqliteDriver;
    use crate::{PoolConfig, SqliteLocation};

    const WAIT_MAX: Duration = Duration::from_secs(10);

    /// So many seconds after `start`.
    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn late(calls: &Calls, now: Instant) -> Option<String> {
        calls.stalled_at(now).map(|stalled| stalled.to_string())
    }

    #[test]
    fn the_oldest_call_is_known_until_it_ends() {
        let (calls, start) = (Calls::new(WAIT_MAX, Reads::Elsewhere), Instant::now());
        assert_eq!(calls.oldest_at(start), Duration::ZERO);
        let first = calls.begin_at(Step::Write, "Model", start);
        let second = calls.begin_at(Step::Read, "", after(start, 3));
        assert_eq!(calls.oldest_at(after(start, 7)), Duration::from_secs(7));
        drop(first);
        assert_eq!(calls.oldest_at(after(start, 7)), Duration::from_secs(4));
        drop(second);
        assert_eq!(calls.oldest_at(after(start, 7)), Duration::ZERO);
    }

    #[test]
    fn a_write_that_waits_is_named_with_its_kind_and_its_step() {
        let (calls, start) = (Calls::new(WAIT_MAX, Reads::Elsewhere), Instant::now());
        let call = calls.begin_at(Step::Write, "Model", start);
        assert_eq!(late(&calls, after(start, 9)), None);
        let write = "the database has not answered a write of Model for 12 s";
        assert_eq!(late(&calls, after(start, 12)).as_deref(), Some(write));
        call.commits();
        let commit = "the database has not answered a commit of Model for 13 s";
        assert_eq!(late(&calls, after(start, 13)).as_deref(), Some(commit));
    }

    #[test]
    fn a_long_read_beside_reads_that_are_answered_is_no_stall() {
        let (calls, start) = (Calls::new(WAIT_MAX, Reads::Elsewhere), Instant::now());
        let long = calls.begin_at(Step::Read, "", start);
        let short = calls.begin_at(Step::Read, "", after(start, 8));
        short.answered(false, after(start, 9));
        drop(short);
        assert_eq!(late(&calls, after(start, 18)), None);
        let read = "the database has not answered a read for 19 s";
        assert_eq!(late(&calls, after(start, 19)).as_deref(), Some(read));
        drop(long);
    }

    #[test]
    fn a_long_read_of_a_database_in_this_process_is_slow_and_no_stall() {
        let (calls, start) = (Calls::new(WAIT_MAX, Reads::Here), Instant::now());
        let read = calls.begin_at(Step::Read, "", start);
        assert_eq!(late(&calls, after(start, 19)), None);
        let _write = calls.begin_at(Step::Write, "Model", start);
        let write = "the database has not answered a write of Model for 19 s";
        assert_eq!(late(&calls, after(start, 19)).as_deref(), Some(write));
        drop(read);
    }

    /// Whether a read of an hour counts as a stall, in a store of this driver.
    fn waits_for_reads(driver: impl Driver) -> bool {
        let (calls, start) = (Connections::new(driver).calls, Instant::now());
        let _read = calls.begin_at(Step::Read, "", start);
        late(&calls, after(start, 3_600)).is_some()
    }

    #[tokio::test]
    async fn sqlite_reads_in_this_process_and_a_server_elsewhere() {
        let config = PoolConfig::default();
        let server = MySqlDriver::new(MySqlConnectOptions::new().database("k"), &config).expect("a database is named");
        assert!(waits_for_reads(server));
        assert!(!waits_for_reads(SqliteDriver::new(&SqliteLocation::Memory, &config)));
    }

    /// What is logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<String>>);

    impl Visit for Log {
        fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
            *self.0.lock().expect("not poisoned") += &format!("{value:?}\n");
        }
    }

    impl Subscriber for Log {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn a_slow_statement_is_not_reported_as_a_database_that_does_not_answer() {
        // With one dispatcher alone, tracing remembers what other tests' threads want of a line.
        let _second = Dispatch::new(Log::default());
        for (reads, expected) in [
            (Reads::Here, "A statement takes long"),
            (Reads::Elsewhere, "The database does not answer"),
        ] {
            let log = Log::default();
            with_default(&Dispatch::new(log.clone()), || {
                Calls::new(Duration::ZERO, reads).begin(Step::Read, "").report_late()
            });
            let reported = log.0.lock().expect("not poisoned").clone();
            let reported: Vec<&str> = reported
                .lines()
                .filter(|line| line.contains("database") || line.contains("statement"))
                .collect();
            assert!(
                matches!(reported[..], [line] if line.starts_with(expected)),
                "{reported:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_late_call_counts_until_it_ends_whether_it_was_answered_or_not() {
        const LIMIT: Duration = Duration::from_millis(200);
        let calls = Calls::new(Duration::from_millis(20), Reads::Elsewhere);
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let [first, second] = [1, 2].map(|_| calls.begin(Step::Write, "Model"));
        let watch = async {
            while calls.state().late < 2 {
                tokio::task::yield_now().await;
            }
            answer.send(()).expect("it waits");
        };
        let never = second.bound(LIMIT, std::future::pending::<()>());
        let (answered, never, ()) = tokio::join!(first.bound(60 * LIMIT, answered), never, watch);
        assert!(answered.is_ok() && never.is_err());
        assert_eq!(calls.state().late, 0);
        drop((first, second));
        assert!(calls.stalled().is_none() && calls.oldest().is_zero());
    }
}
