//! The scheduler: one history from one seed. Ingesters, users, time and faults take
//! turns as the seed says; after every turn the checks look at everything.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kindex_runtime::ingester::controller::Controller;
use kindex_runtime::ingester::message::{Input, Now, Output};
use kindex_runtime::ingester::settings::Settings;
use kindex_runtime::metrics::KindMetrics;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::checks;
use super::cluster::SimCluster;
use super::database::SimDatabase;
use super::perform::{self, Fault};
use super::{PLATFORM, THING, users};

const CHAOS_TURNS: u32 = 400;
const CALM_TURNS_MAX: u32 = 20_000;

/// One process.
pub(super) struct Ingester {
    pub(super) controller: Controller,
    pub(super) metrics: Arc<KindMetrics>,
    /// What it asked for and has no answer to.
    pub(super) tasks: Vec<Output>,
    /// Position of its open watch.
    pub(super) watch: Option<u64>,
    started: Duration,
}

pub struct World {
    pub(super) rng: StdRng,
    settings: Settings,
    pub(super) cluster: SimCluster,
    pub(super) database: SimDatabase,
    pub(super) ingesters: Vec<Ingester>,
    /// Requests whose caller is gone, or was told that they failed, and that still arrive.
    pub(super) ghosts: Vec<Output>,
    pub(super) elapsed: Duration,
    clock_error: Duration,
    /// Relists of each ingester when the cluster was restored; users wait until it is seen.
    pub(super) restored: Option<Vec<u64>>,
    pub(super) telling: bool,
    pub(super) story: Vec<String>,
    wrong: Option<String>,
    pub(super) faults: u32,
}

impl World {
    /// Plays the whole history of a seed, and tells its story where that is wanted.
    pub fn run(seed: u64, telling: bool) -> Self {
        let mut world = Self::new(seed, telling);
        for _ in 0..CHAOS_TURNS {
            world.turn();
            if world.wrong.is_some() {
                return world;
            }
        }
        world.calm_down();
        world
    }

    fn new(seed: u64, telling: bool) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let settings = Settings {
            concurrent_reconciles: rng.random_range(1..=3),
            requeue_period: Duration::from_secs(2),
            deletion_delay: Duration::from_millis(if rng.random_bool(0.3) { 300 } else { 0 }),
            adopt_finalizers: rng.random_bool(0.3),
            version_cache: rng.random_bool(0.3),
            batch_rows_max: rng.random_range(1..=5),
            pending_max: rng.random_range(4..=20),
            page_rows: rng.random_range(1..=4),
            checkpoint_period: Duration::from_millis(100),
            ..Settings::default()
        };
        let processes = if rng.random_bool(0.25) { 2 } else { 1 };
        let mut world = Self {
            telling,
            story: vec![format!("{processes} ingesters, {settings:?}")],
            rng,
            settings,
            cluster: SimCluster::default(),
            database: SimDatabase::default(),
            ingesters: Vec::new(),
            ghosts: Vec::new(),
            elapsed: Duration::ZERO,
            clock_error: Duration::ZERO,
            restored: None,
            wrong: None,
            faults: 0,
        };
        for index in 0..processes {
            let ingester = world.new_ingester();
            world.ingesters.push(ingester);
            world.step(index, Input::Start);
        }
        world
    }

    pub fn story(&self) -> String {
        self.story.join("\n")
    }

    pub fn verdict(&self) -> Result<(), String> {
        self.wrong.clone().map_or(Ok(()), Err)
    }

    pub(super) fn new_ingester(&mut self) -> Ingester {
        let metrics = Arc::new(KindMetrics::default());
        let seed = self.rng.random();
        let settings = self.settings.clone();
        Ingester {
            controller: Controller::new(&THING, PLATFORM, settings, metrics.clone(), seed),
            metrics,
            tasks: Vec::new(),
            watch: None,
            started: self.elapsed,
        }
    }

    pub(super) fn wall(&self) -> Timestamp {
        let start = Timestamp::from_second(1_800_000_000).expect("in range");
        start + self.elapsed + self.clock_error
    }

    fn turn(&mut self) {
        self.elapsed += Duration::from_millis(self.rng.random_range(0..10));
        let who = self.rng.random_range(0..self.ingesters.len());
        match self.rng.random_range(0..1000) {
            0..300 => self.let_users_act(),
            300..650 => self.complete_task(who),
            650..850 => {
                self.deliver_event(who);
            }
            850..900 => self.perform_ghost(),
            900..940 => self.elapsed += Duration::from_millis(self.rng.random_range(0..500)),
            940..955 => self.crash(who),
            955..970 => self.cut_watch(who),
            970..980 => {
                tell!(self, "etcd is compacted");
                self.cluster.compact();
            }
            980..985 => {
                tell!(self, "etcd is backed up");
                self.cluster.back_up();
            }
            985..990 => self.restore(),
            990..995 => {
                self.clock_error = Duration::from_secs(self.rng.random_range(0..100));
                tell!(self, "the wall clock jumps");
            }
            _ => self.bookmark(who),
        }
        self.wake();
        self.check();
    }

    fn check(&mut self) {
        if self.wrong.is_none() {
            self.wrong = checks::after_turn(&mut self.cluster, &mut self.database).err();
        }
    }

    fn let_users_act(&mut self) {
        if self.is_restoration_unseen() {
            return;
        }
        let wall = self.wall();
        let deed = users::act(&mut self.cluster, wall, &mut self.rng);
        tell!(self, "{deed} → @{}", self.cluster.version);
    }

    pub(super) fn step(&mut self, who: usize, input: Input) {
        let now = Now {
            wall: self.wall(),
            elapsed: self.elapsed - self.ingesters[who].started,
        };
        let outputs = self.ingesters[who].controller.step(now, input);
        for output in outputs {
            tell!(self, "  {who} → {}", perform::summary(&output));
            match output {
                Output::Watch(from) => self.ingesters[who].watch = Some(from.0),
                Output::StopWatch => self.ingesters[who].watch = None,
                Output::Notify(_) => {}
                task => self.ingesters[who].tasks.push(task),
            }
        }
    }

    /// Tells every controller the time that it waited for.
    fn wake(&mut self) {
        for who in 0..self.ingesters.len() {
            let ingester = &self.ingesters[who];
            let elapsed = self.elapsed - ingester.started;
            if ingester.controller.deadline().is_some_and(|at| at <= elapsed) {
                self.step(who, Input::Timer);
            }
        }
    }

    fn complete_task(&mut self, who: usize) {
        let tasks = &mut self.ingesters[who].tasks;
        if tasks.is_empty() {
            return;
        }
        let index = self.rng.random_range(0..tasks.len());
        let task = tasks.swap_remove(index);
        let fault = match self.rng.random_range(0..100) {
            0..5 => Fault::Before,
            5..9 => Fault::After,
            9..12 => Fault::Late,
            _ => Fault::None,
        };
        self.complete(who, task, fault);
    }

    fn complete(&mut self, who: usize, task: Output, fault: Fault) {
        tell!(self, "{who} {} ({fault:?})", perform::summary(&task));
        self.faults += u32::from(fault != Fault::None);
        let wall = self.wall();
        let answer = match fault {
            Fault::None => perform::perform(&task, &mut self.cluster, &mut self.database, wall),
            Fault::Before => perform::failure(&task, &mut self.rng),
            Fault::After => {
                perform::perform(&task, &mut self.cluster, &mut self.database, wall);
                perform::failure(&task, &mut self.rng)
            }
            Fault::Late => {
                let answer = perform::failure(&task, &mut self.rng);
                self.haunt(task);
                answer
            }
        };
        self.step(who, answer);
    }

    fn perform_ghost(&mut self) {
        if self.ghosts.is_empty() {
            return;
        }
        let index = self.rng.random_range(0..self.ghosts.len());
        let ghost = self.ghosts.swap_remove(index);
        tell!(self, "late: {}", perform::summary(&ghost));
        let wall = self.wall();
        perform::perform(&ghost, &mut self.cluster, &mut self.database, wall);
    }

    /// Whether there was one, and room for it.
    fn deliver_event(&mut self, who: usize) -> bool {
        let ingester = &mut self.ingesters[who];
        let Some(position) = ingester.watch else {
            return false;
        };
        if !ingester.controller.wants_events() {
            return false;
        }
        let event = match self.cluster.next_event(position) {
            Ok(None) => return false,
            Ok(Some(event)) => {
                let version = perform::version_of(&event);
                let repeated = self.rng.random_bool(0.02);
                ingester.watch = Some(if repeated { position } else { version });
                Ok(event)
            }
            Err(error) => {
                ingester.watch = None;
                Err(error)
            }
        };
        tell!(self, "{who} sees {event:?}");
        self.step(who, Input::Watch(event));
        true
    }

    /// No users and no faults any more: everything must come to rest, and be right.
    fn calm_down(&mut self) {
        tell!(self, "calm");
        while !self.ghosts.is_empty() {
            self.perform_ghost();
        }
        self.come_to_rest();
        users::tidy_up(&mut self.cluster);
        self.come_to_rest();
        if self.wrong.is_none() {
            self.wrong = checks::at_rest(self.ingesters.len(), &self.cluster, &self.database).err();
        }
        tell!(self, "{} faults", self.faults);
    }

    fn come_to_rest(&mut self) {
        for turn in 0.. {
            if turn > CALM_TURNS_MAX {
                self.wrong = Some("something starves: no rest after the calm".to_owned());
            }
            self.check();
            if self.wrong.is_some() || !self.calm_turn() {
                return;
            }
        }
    }

    /// Whether anything was left to do.
    fn calm_turn(&mut self) -> bool {
        let mut busy = false;
        for who in 0..self.ingesters.len() {
            if !self.ingesters[who].tasks.is_empty() {
                let task = self.ingesters[who].tasks.remove(0);
                self.complete(who, task, Fault::None);
                busy = true;
            }
            busy |= self.deliver_event(who);
        }
        if busy {
            self.elapsed += Duration::from_millis(1);
            self.wake();
            return true;
        }
        let deadlines = self.ingesters.iter().filter_map(|ingester| {
            let at = ingester.controller.deadline()?;
            Some(at + ingester.started)
        });
        let Some(next) = deadlines.min() else {
            return false;
        };
        self.elapsed = self.elapsed.max(next);
        self.wake();
        true
    }
}
