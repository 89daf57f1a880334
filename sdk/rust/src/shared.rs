//! What the training thread and the thread that sends share: the buffer, what is asked for, and what became of it.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::buffer::{Buffer, Point};
use crate::error::{Error, Refusal};
use crate::settings::Status;

/// As many points are sent at once.
pub(crate) const BATCH_POINTS: usize = 5000;

/// What became of the points that were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Stored.
    pub accepted: u64,
    /// Stored by an attempt whose answer was lost, and answered by a later one.
    pub deduplicated: u64,
    /// Dropped by the service with a warning, as invalid or beyond a limit.
    pub dropped: u64,
}

#[derive(Debug)]
struct State {
    buffer: Buffer,
    report: Report,
    /// Somebody waits for answers.
    is_urgent: bool,
    /// How the run is to end.
    end: Option<Status>,
    has_ended: bool,
    /// The run was dropped.
    is_abandoned: bool,
    refusal: Option<Refusal>,
    /// Why the last attempt failed, since the last answer.
    failure: Option<String>,
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Task {
    /// Nothing waits.
    Nothing,
    /// Something waits, and more may come.
    Wait,
    /// Send these.
    Send(Vec<Point>),
    /// All is answered: end the run.
    End(Status),
    /// Stop.
    Stop,
}

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// For the thread that sends: there may be something to do.
    wake: Notify,
    /// For those who wait: something was answered.
    answered: Condvar,
}

impl Shared {
    pub(crate) fn new(points_max: usize) -> Self {
        Self {
            state: Mutex::new(State {
                buffer: Buffer::new(points_max),
                report: Report::default(),
                is_urgent: false,
                end: None,
                has_ended: false,
                is_abandoned: false,
                refusal: None,
                failure: None,
            }),
            wake: Notify::new(),
            answered: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it has the state")
    }

    pub(crate) fn log(&self, step: i64, values: &[(&str, f64)], time: i64) -> Result<(), Error> {
        let mut state = self.state();
        if let Some(refusal) = &state.refusal {
            return Err(refusal.clone().into());
        }
        let before = state.buffer.len();
        if !state.buffer.push(step, values, time) {
            return Err(Error::Full { points: before });
        }
        // Who sends looks by itself for what comes between.
        if before == 0 || before / BATCH_POINTS != state.buffer.len() / BATCH_POINTS {
            self.wake.notify_one();
        }
        Ok(())
    }

    pub(crate) fn report(&self) -> Report {
        self.state().report
    }

    /// Waits until all is answered, and the run has ended where it is to end.
    pub(crate) fn wait(&self, end: Option<Status>, timeout: Duration) -> Result<Report, Error> {
        let began = Instant::now();
        let mut state = self.state();
        state.is_urgent = state.buffer.len() > 0;
        state.end = end.or(state.end);
        self.wake.notify_one();
        loop {
            if let Some(refusal) = &state.refusal {
                return Err(refusal.clone().into());
            }
            if state.buffer.len() == 0 && (end.is_none() || state.has_ended) {
                return Ok(state.report);
            }
            let Some(left) = timeout.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) else {
                let points = state.buffer.len();
                let why = state
                    .failure
                    .clone()
                    .unwrap_or_else(|| "the service takes long".to_owned());
                return Err(Error::Timeout { points, timeout, why });
            };
            let waited = self.answered.wait_timeout(state, left);
            state = waited.expect("nothing panics while it has the state").0;
        }
    }

    pub(crate) fn abandon(&self) {
        self.state().is_abandoned = true;
        self.wake.notify_one();
    }

    /// What to do; `is_due` where what waits has waited long enough.
    pub(crate) fn task(&self, is_due: bool) -> Task {
        let state = self.state();
        match (state.is_abandoned, state.buffer.len(), state.end) {
            (true, _, _) => Task::Stop,
            (false, 0, Some(end)) => Task::End(end),
            (false, 0, None) => Task::Nothing,
            (false, 1.., end) if is_due || state.is_urgent || end.is_some() => {
                Task::Send(state.buffer.batch(BATCH_POINTS))
            }
            (false, BATCH_POINTS.., _) => Task::Send(state.buffer.batch(BATCH_POINTS)),
            (false, 1.., _) => Task::Wait,
        }
    }

    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.state().is_abandoned
    }

    /// An attempt failed, and there will be another.
    pub(crate) fn failed(&self, why: String) {
        self.state().failure = Some(why);
    }

    /// The first points were answered.
    pub(crate) fn answered(&self, points: usize, of: Report) {
        let mut state = self.state();
        state.failure = None;
        state.buffer.answered(points);
        state.is_urgent = state.is_urgent && state.buffer.len() > 0;
        state.report.accepted += of.accepted;
        state.report.deduplicated += of.deduplicated;
        state.report.dropped += of.dropped;
        self.answered.notify_all();
    }

    /// The thread that sends is done.
    pub(crate) fn close(&self, outcome: Result<(), Refusal>) {
        let mut state = self.state();
        match outcome {
            Ok(()) => state.has_ended = true,
            Err(refusal) => state.refusal = Some(refusal),
        }
        self.answered.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(points: i64) -> Shared {
        let shared = Shared::new(100_000);
        for step in 0..points {
            shared.log(step, &[("a", 0.5)], 0).expect("room");
        }
        shared
    }

    fn sends(task: Task) -> usize {
        match task {
            Task::Send(points) => points.len(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn points_are_sent_when_enough_wait_or_they_have_waited_or_somebody_waits() {
        assert_eq!(with(0).task(true), Task::Nothing);
        assert_eq!(with(1).task(false), Task::Wait);
        assert_eq!(sends(with(1).task(true)), 1);
        assert_eq!(sends(with(BATCH_POINTS as i64 + 1).task(false)), BATCH_POINTS);
        let shared = with(1);
        shared.failed("nobody is there".to_owned());
        let late = shared.wait(None, Duration::ZERO).expect_err("nobody answers");
        assert_eq!(
            late.to_string(),
            "1 points were not answered within 0ns: nobody is there"
        );
        assert_eq!(sends(shared.task(false)), 1);
    }

    #[test]
    fn a_run_ends_after_its_last_point_is_answered() {
        let shared = with(2);
        let _late = shared.wait(Some(Status::Failed), Duration::ZERO);
        assert_eq!(sends(shared.task(false)), 2);
        let report = Report {
            accepted: 1,
            dropped: 1,
            ..Report::default()
        };
        shared.answered(2, report);
        assert_eq!(shared.task(false), Task::End(Status::Failed));
        shared.close(Ok(()));
        assert_eq!(shared.wait(Some(Status::Failed), Duration::ZERO), Ok(report));
    }

    #[test]
    fn an_abandoned_run_sends_nothing_more() {
        let shared = with(2);
        shared.abandon();
        assert_eq!(shared.task(true), Task::Stop);
    }

    #[test]
    fn after_a_refusal_every_call_says_so() {
        let shared = with(2);
        let refusal = Refusal {
            reason: "RUN_TERMINAL".to_owned(),
            message: "the run has ended".to_owned(),
        };
        shared.close(Err(refusal.clone()));
        let refused = Error::from(refusal);
        assert_eq!(shared.log(3, &[("a", 0.5)], 0), Err(refused.clone()));
        assert_eq!(shared.wait(None, Duration::from_secs(60)), Err(refused));
    }
}
