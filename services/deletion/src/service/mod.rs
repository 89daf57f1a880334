//! The graph at work on one cluster, in one process of several at a time. Which of them it is, somebody else decides;
//! nothing depends on it, because every write is conditional.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::cleanup_states::CallOutcome;
use crate::cluster::Cluster;
use crate::cluster::carry_out::carry_out;
use crate::cluster::cycle::CycleAnswer;
use crate::cluster::follow::{Report, follow};
use crate::cluster::follower::{Follower, Message};
use crate::cluster::outcome::{Outcome, Task};
use crate::decide::{Seen, Step};
use crate::metrics::{Metrics, word};
use crate::notice::{Notice, cycle_notice};
use crate::object::{Key, Object};
use crate::web::Posting;

mod arrivals;

mod turns;

mod peer_turns;

mod queue;

mod placed;

pub(crate) mod waiting;

pub(crate) mod work;

mod readiness_failures;

mod refused;

mod peers;

mod walked;

mod unread_kinds;

mod archived_cleanups;

mod tombstones;

pub(crate) mod notices;

use notices::{Due, Notices, Search};
use peers::{FAILURES_UNTIL_REPORT, Peers, unanswered};
use readiness_failures::ReadinessFailures;
use tombstones::{Blocked, Cycles, Walk};
use work::{Setup, Work};

/// Steps that are carried out at a time, of different objects.
const STEPS_AT_A_TIME: usize = 64;
/// Events that are recorded at a time: no step waits for them, though they may be many.
const NOTICES_AT_A_TIME: usize = 2;
/// Searches for cycles at a time.
const SEARCHES_AT_A_TIME: usize = 1;
/// Reports that wait to be read. That of a watch has the whole text of its object.
const REPORTS_MAX: usize = 64;
/// Between two looks at what waits.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After the first failure of a step; each further one doubles it.
const RETRY_AFTER: Duration = Duration::from_millis(500);
const RETRIES_DOUBLED: u32 = 6;

/// How it is set.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// For how long an object may wait, for the same others, before an event names them.
    pub blocked_after: Duration,
}

/// The deletion graph of one cluster.
pub struct Deletion {
    cluster: Cluster,
    options: Options,
    metrics: Metrics,
    readiness_failures: ReadinessFailures,
    /// What waits in the archive.
    blocked: Blocked,
    /// Of which cycles it may be.
    cycles: Cycles,
}

/// What came of recording something of an object.
struct Recorded {
    key: Key,
    /// Whether that nothing is refused to it any more could not be written.
    is_left: bool,
}

/// What ends beside the loop. A pause takes nobody's turn.
#[derive(Default)]
struct RunningTasks {
    steps: JoinSet<(Box<Task>, Outcome)>,
    /// Calls of cleanups, which keep no other step from its turn.
    cleanups: JoinSet<(Box<Task>, Outcome)>,
    /// After steps that failed.
    pauses: JoinSet<Key>,
    /// Events that are being recorded, and those that will be.
    recording: JoinSet<Recorded>,
    /// Searches for cycles, which keep no notice of another object from its turn.
    searches: JoinSet<(Search, CycleAnswer)>,
    notices: Notices,
}

impl Deletion {
    /// A graph that does nothing yet.
    pub fn new(cluster: Cluster, options: Options, metrics: Metrics) -> Self {
        Self {
            cluster: cluster.counting(metrics.clone()),
            options,
            metrics,
            readiness_failures: ReadinessFailures::default(),
            blocked: Blocked::default(),
            cycles: Cycles::default(),
        }
    }

    /// Why it does not do its work now; nothing where it does, or waits for its turn.
    pub fn not_ready(&self) -> Vec<String> {
        self.readiness_failures.list()
    }

    /// Works until stopped. It can be run again.
    ///
    /// # Guarantees
    /// Once it has returned, it writes and posts nothing more.
    pub async fn run(&self, stop: &CancellationToken) {
        let (send, mut reports) = mpsc::channel(REPORTS_MAX);
        let mut watches = JoinSet::new();
        for kind in self.cluster.kinds().all() {
            self.metrics.begin(kind.name);
            let (cluster, send) = (self.cluster.clone(), send.clone());
            watches.spawn(async move { follow(&cluster, kind, &send).await });
        }
        let mut work = Work::new(
            self.cluster.kinds().declared(),
            self.setup(),
            self.options.blocked_after,
        );
        let mut peers = Peers::follow(&self.cluster);
        let mut running = RunningTasks::default();
        let posting = Posting::begin(self.cluster.web_notices());
        let (follower, mut messages) = Follower::channel();
        let mut walks = self.walk(follower.clone(), stop);
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while running.steps.len() < STEPS_AT_A_TIME
                && let Some(task) = work.next(Instant::now())
            {
                self.begin(task, &mut running);
            }
            self.record_due(&mut running, &follower);
            peers.ask(&mut work);
            tokio::select! {
                () = stop.cancelled() => break,
                Some(report) = reports.recv() => self.hear(&mut work, report),
                Some(ended) = running.steps.join_next() => {
                    let (task, outcome) = ended.expect("a step does not panic");
                    self.end(&mut work, &task, outcome, &mut running);
                }
                Some(ended) = running.cleanups.join_next() => {
                    let (task, outcome) = ended.expect("a panic of a cleanup is caught");
                    self.end(&mut work, &task, outcome, &mut running);
                }
                Some(message) = messages.recv() => self.answer(message, &mut work, &mut running),
                Some(walked) = walks.join_next() => walked.expect("a walk does not panic"),
                Some(paused) = running.pauses.join_next() => work.free(&paused.expect("a pause does not panic")),
                Some(done) = running.recording.join_next() => {
                    self.recorded(&mut work, &mut running, done.expect("no report panics"));
                }
                Some(ended) = running.searches.join_next() => {
                    self.searched(&mut work, &mut running, ended.expect("no search panics"));
                }
                input = peers.next() => peers.take(input, &mut work, &self.readiness_failures),
                _ = looks.tick() => {
                    peers.hold(&work);
                    self.look(&mut work, &mut running);
                }
            }
        }
        // Nobody waits for an answer any more.
        drop(messages);
        watches.shutdown().await;
        peers.end().await;
        // What has come of them is asked again.
        running.cleanups.shutdown().await;
        running.searches.shutdown().await;
        // A write that was sent is waited for: its outcome is in the cluster.
        while running.steps.join_next().await.is_some() {}
        while walks.join_next().await.is_some() {}
        while running.recording.join_next().await.is_some() {}
        posting.end().await;
        self.readiness_failures.clear();
        self.metrics.forget_refused();
    }

    /// Begins to walk over what is deleted in the archive, where there is one.
    fn walk(&self, follower: Follower, stop: &CancellationToken) -> JoinSet<()> {
        let mut walks = JoinSet::new();
        if self.cluster.has_archive() {
            let walk = Walk::new(
                self.cluster.clone(),
                self.metrics.clone(),
                self.options.blocked_after,
                self.blocked.clone(),
                self.cycles.clone(),
                follower,
            );
            walks.spawn(walk.run(stop.clone()));
        }
        walks
    }

    fn setup(&self) -> Setup {
        Setup {
            foreign: self.cluster.peers().kinds().cloned().collect(),
            look_ups: self.cluster.peers().look_ups().clone(),
            services: self.cluster.peers().groups_of_holders().cloned().collect(),
            outside: self.cluster.kinds_outside().cloned().collect(),
            archives: self.cluster.has_archive(),
        }
    }

    fn begin(&self, task: Task, running: &mut RunningTasks) {
        let cluster = self.cluster.clone();
        let set = if task.step == Step::CleanUp {
            &mut running.cleanups
        } else {
            &mut running.steps
        };
        set.spawn(async move {
            let outcome = carry_out(&cluster, &task, Timestamp::now()).await;
            (Box::new(task), outcome)
        });
    }

    fn hear(&self, work: &mut Work, report: Report) {
        match report {
            Report::Listed(kind, version, objects) => {
                self.readiness_failures.end(&kind);
                work.on_list(&kind, version, objects);
            }
            Report::Applied(kind, text) => work.on_watch_event(self.cluster.kinds(), kind, &text, Instant::now()),
            Report::Deleted(key, uid) => work.gone(&key, &uid, Instant::now()),
            Report::Lost(kind, why) => {
                self.readiness_failures
                    .begin(&kind, format!("{kind} cannot be followed: {why}"));
                work.on_watch_lost(&kind);
            }
        }
    }

    fn end(&self, work: &mut Work, task: &Task, outcome: Outcome, running: &mut RunningTasks) {
        work.ended(task);
        for object in outcome.seen {
            work.seen(object, Instant::now());
        }
        for (key, uid) in outcome.gone {
            work.gone(&key, &uid, Instant::now());
        }
        work.settle(task, &outcome.writes);
        if let Some(refused) = outcome.swept.as_ref().and_then(|swept| swept.refused.as_ref()) {
            refused::note(&self.metrics, &task.object, refused);
        }
        work.learned(&task.object, outcome.swept, outcome.missing, Instant::now());
        if let Some(answer) = outcome.held {
            work.asked(&task.object, answer, Instant::now());
        }
        if let Some(has_former) = outcome.has_former {
            work.asked_for_former(&task.object, has_former, Instant::now());
        }
        if let Some(called) = outcome.cleanup {
            self.cleanup_called(work, &task.object, called);
        }
        for object in task.objects() {
            match &outcome.failed {
                None => {
                    self.metrics.carried_out(&object.key.kind.kind, &task.step);
                    work.succeeded(&object.key);
                    work.free(&object.key);
                }
                Some(failed) => self.failed(work, task, object, failed, running),
            }
        }
    }

    fn failed(&self, work: &mut Work, task: &Task, object: &Object, failed: &str, running: &mut RunningTasks) {
        let key = object.key.clone();
        self.metrics.failed(&key.kind.kind);
        let failures = work.failed(&key);
        tracing::warn!(object = %key, step = word(&task.step), details = ?task.step, failed, "A step of a deletion is tried again");
        if failures == FAILURES_UNTIL_REPORT
            && let Some(notice) = unanswered(&self.cluster, task, failed)
        {
            running.notices.add(object.clone(), notice);
        }
        running.pauses.spawn(async move {
            sleep(RETRY_AFTER * 2_u32.pow(failures.min(RETRIES_DOUBLED))).await;
            key
        });
    }

    fn cleanup_called(&self, work: &mut Work, object: &Object, outcome: CallOutcome) {
        match &outcome {
            CallOutcome::Gone => tracing::debug!(object = %object.key, "Nothing is left outside"),
            CallOutcome::Pending(what, _) => tracing::debug!(object = %object.key, what, "Something is left outside"),
            CallOutcome::Failed(why) => {
                self.metrics.failed(&object.key.kind.kind);
                tracing::warn!(object = %object.key, why, "A cleanup outside is tried again");
            }
        }
        self.metrics.cleanup_called(&object.key.kind.kind, &outcome);
        work.cleanup_called(object, outcome, Instant::now());
    }

    /// Reports what has waited for too long, once for each set of others that it waits for, and which references
    /// vanished.
    fn look(&self, work: &mut Work, running: &mut RunningTasks) {
        let now = Instant::now();
        work.ask_again(now);
        let refused = work.refused();
        for kind in self.cluster.kinds().all() {
            let (objects, longest) = work.blocked(kind.name, now);
            let archived = self.blocked.of(kind.name);
            let longest = longest.max(archived.longest);
            self.metrics.blocked(kind.name, objects + archived.blocked, longest);
            let refused = refused.get(kind.name).copied().unwrap_or_default();
            self.metrics.refused(kind.name, refused + archived.refused);
        }
        let vanished = work.vanished(now);
        for (object, _) in &vanished {
            self.metrics.vanished(&object.key.kind.kind);
        }
        self.cycles.add(work.archived_on_cycles());
        for overdue in work.overdue(now, Timestamp::now()) {
            running.notices.add_overdue(overdue);
        }
        for (object, notice) in vanished {
            running.notices.add(object, notice);
        }
        for object in work.placed() {
            running.notices.add_placed(object);
        }
    }

    /// Begins to search for the cycles that objects may be on.
    fn search_due(&self, running: &mut RunningTasks, follower: &Follower) {
        while running.searches.len() < SEARCHES_AT_A_TIME
            && let Some(search) = running.notices.begin_search()
        {
            let (cluster, follower) = (self.cluster.clone(), follower.clone());
            running.searches.spawn(async move {
                let answer = cluster.cycle_of(&search.object, &follower).await;
                (search, answer)
            });
        }
    }

    /// Begins to record events and conditions that are due, and to search where one waits for that.
    fn record_due(&self, running: &mut RunningTasks, follower: &Follower) {
        self.search_due(running, follower);
        while running.recording.len() < NOTICES_AT_A_TIME
            && let Some((object, due)) = running.notices.begin()
        {
            running.recording.spawn(record(self.cluster.clone(), object, due));
        }
    }

    /// Without an answer of the archive, people are shown the holders, and the object is looked at again.
    fn searched(&self, work: &mut Work, running: &mut RunningTasks, ended: (Search, CycleAnswer)) {
        let (search, answer) = ended;
        let Search {
            object,
            notice,
            is_reported,
        } = search;
        let said = match answer {
            CycleAnswer::Path(path) => {
                self.report_cycle(work, running, &path);
                Some(Notice {
                    roots: notice.roots,
                    ..cycle_notice(&Seen::keys(&path))
                })
            }
            CycleAnswer::Absent => (!is_reported).then_some(notice),
            CycleAnswer::Unread => {
                let given_up = running.notices.give_up_searches();
                work.search_again(given_up.iter().chain([&object.key]), Instant::now());
                (!is_reported).then_some(notice)
            }
            CycleAnswer::Stopped => None,
        };
        running.notices.end_search(object, said);
    }

    fn recorded(&self, work: &mut Work, running: &mut RunningTasks, recorded: Recorded) {
        running.notices.end(&recorded.key);
        if recorded.is_left {
            work.unwritten(recorded.key, Instant::now());
        }
    }

    fn answer(&self, message: Message, work: &mut Work, running: &mut RunningTasks) {
        // Whoever asked may have ended.
        match message {
            Message::Former(holder, answer) => _ = answer.send(work.has_former(&holder)),
            Message::Waiting(holder, answer) => _ = answer.send(work.waiting_on(&holder)),
            Message::Cycle(path) => self.report_cycle(work, running, &path),
        }
    }

    /// Whoever is on a cycle that was found may have been reported without it.
    fn report_cycle(&self, work: &mut Work, running: &mut RunningTasks, path: &[Seen]) {
        self.cycles.add(path.iter().map(|seen| seen.uid.clone()));
        for overdue in work.on_cycle(path, Timestamp::now()) {
            running.notices.add_overdue(overdue);
        }
    }
}

async fn record(cluster: Cluster, object: Object, due: Due) -> Recorded {
    let is_left = match due {
        Due::Notice(notice) => {
            cluster.report(&object, &notice).await;
            cluster.write_conditions(&object, &notice).await;
            false
        }
        Due::Placed => !cluster.write_placed(&object).await,
    };
    Recorded {
        key: object.key,
        is_left,
    }
}
