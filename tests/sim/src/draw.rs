//! Draws the turns of a history at random. Every seed aims at one pair of a fault and a step, so that each pair happens
//! in some history.

use kindex_model::checkpoint::Checkpoint;
use kindex_runtime::message::Output;
use kindex_store::RowWrite;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::coverage::aim;
use super::fault::Fault;
use super::process::Watch;
use super::step::{Class, Step};
use super::thing::{FINALIZER, REFERENCES};
use super::turn::Turn;
use super::user::{ActionKind, NAMES, UserAction};
use super::world::World;

/// See the module.
pub struct Draw {
    rng: Xoshiro256PlusPlus,
    aim: (Fault, Step),
    /// How many of a thousand user actions make the database reject the object.
    poison_permille: u32,
    /// How many of a thousand turns back up the cluster, and as many restore it.
    backup_permille: u32,
    /// Whether an ingester that starts without a checkpoint is slow until the cluster is restored, and fast while only
    /// another one knows of the restoration.
    latecomer: bool,
}

impl Draw {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        let aim = aim(seed);
        let (fault, step) = aim;
        let poisoned = matches!(step, Step::Quarantine | Step::Unquarantine) || fault == Fault::Refused;
        let restored = step == Step::Rewind || fault == Fault::Restoration;
        Self {
            // Settings are drawn from the same seed, and must not determine the first turns.
            rng: Xoshiro256PlusPlus::seed_from_u64(!seed),
            aim,
            poison_permille: if poisoned { 250 } else { 40 },
            backup_permille: if restored { 25 } else { 5 },
            latecomer: restored && seed.is_multiple_of(2),
        }
    }

    /// The process that the next turn is about.
    fn who(&mut self, world: &World<'_>) -> usize {
        let who = self.rng.random_range(0..world.processes.len());
        let latecomer = world.processes.len() - 1;
        if !self.latecomer || latecomer == 0 || !self.rng.random_bool(0.9) {
            return who;
        }
        let checkpoint = world.storage.database().checkpoint;
        let marked = checkpoint.and_then(Checkpoint::restored_to).is_some();
        match (world.restorations.count, marked) {
            (0, _) if world.processes[latecomer].is_blank => 0,
            (0, _) | (_, false) => who,
            (_, true) if world.processes[latecomer].marking => who,
            (_, true) => latecomer,
        }
    }

    /// The next turn.
    pub fn turn(&mut self, world: &World<'_>) -> Turn {
        let sharp = self.overtaking(world).or_else(|| self.overtaken(world));
        if let Some(turn) = sharp.or_else(|| self.aimed(world)) {
            return turn;
        }
        let who = self.who(world);
        let pick = self.rng.random_range(0..64);
        match self.rng.random_range(0..1000) {
            0..230 => Turn::User(UserAction::draw(&mut self.rng, self.poison_permille)),
            230..560 => Turn::CarryOut {
                who,
                pick,
                fault: self.fault_of_a_request(),
                hold: self.rng.random_bool(0.25),
            },
            560..660 => Turn::Arrive { who, pick },
            660..820 => Turn::Event { who },
            820..860 => Turn::OpenWatch {
                who,
                fault: self.fault_of_a_request(),
            },
            860..905 => Turn::Pass {
                ms: self.rng.random_range(1..600),
            },
            905..925 => Turn::LateRequest { pick },
            925..940 => Turn::EndTransaction {
                committed: self.rng.random_bool(0.6),
            },
            940..950 => Turn::Bookmark { who },
            _ => self.disruption(who, world),
        }
    }

    fn disruption(&mut self, who: usize, world: &World<'_>) -> Turn {
        let rare = self.rng.random_range(0..1000);
        if rare < 20 * self.backup_permille {
            // A backup that is taken repeatedly would never be older than what was seen since.
            let cluster = world.api.cluster();
            let kept = cluster.backup_size().is_some() && self.rng.random_bool(0.9);
            return if !kept { Turn::BackUp } else { Turn::Restore };
        }
        match self.rng.random_range(0..100) {
            0..24 => Turn::Crash {
                who,
                effective: self.rng.random(),
            },
            24..32 => Turn::Stop { who },
            32..60 => Turn::EndWatch {
                who,
                broken: self.rng.random_bool(0.5),
            },
            60..74 => Turn::Replay {
                who,
                events: self.rng.random_range(1..6),
            },
            74..86 => Turn::Compact,
            86..90 => self.clock(who),
            _ => {
                let what = [Fault::ClusterAway, Fault::DatabaseAway, Fault::DiskFull];
                let what = *what.choose(&mut self.rng).expect("some");
                self.outage(what)
            }
        }
    }

    fn clock(&mut self, who: usize) -> Turn {
        Turn::SetClock {
            who,
            wrong_by_s: self.rng.random_range(-100..100),
        }
    }

    fn outage(&mut self, fault: Fault) -> Turn {
        Turn::Outage {
            fault,
            ms: self.rng.random_range(10..400),
        }
    }

    fn fault_of_a_request(&mut self) -> Option<Fault> {
        let any = Fault::ALL.choose(&mut self.rng).copied();
        any.filter(|fault| fault.is_of_a_request() && self.rng.random_bool(0.35))
    }

    /// A turn that helps an ingester to receive the end of an object whose row is in a
    /// transaction that it does not know of.
    fn overtaking(&mut self, world: &World<'_>) -> Option<Turn> {
        let aimed = self.aim.0 == Fault::SlowCommit || self.aim.1 == Step::Write;
        if !aimed || !self.rng.random_bool(0.9) {
            return None;
        }
        let stored = world.abandoned.open_transactions.iter().find_map(stored_name)?;
        let name = NAMES.iter().position(|known| *known == stored)?;
        let cluster = world.api.cluster();
        if let Some(object) = cluster.objects.get(stored) {
            let what = match &object.finalizers[..] {
                [] => ActionKind::Delete,
                held if held.iter().any(|finalizer| finalizer == FINALIZER) => ActionKind::StripFinalizer,
                held => match REFERENCES
                    .iter()
                    .position(|name| held.iter().any(|finalizer| finalizer == name))
                {
                    Some(index) => ActionKind::ReleaseReference(index),
                    None => ActionKind::ToggleForeignFinalizer,
                },
            };
            return Some(Turn::User(UserAction { name, what }));
        }
        let who = self.who(world);
        let process = &world.processes[who];
        let news = |from| cluster.next_change(from).is_ok_and(|change| change.is_some());
        if matches!(process.watch, Watch::Open(from) if process.wants_events() && news(from)) {
            return Some(Turn::Event { who });
        }
        let read = process
            .requests
            .iter()
            .position(|request| Step::of(request) == Step::ReadRows);
        Some(match read {
            Some(pick) => Turn::CarryOut {
                who,
                pick,
                fault: None,
                hold: false,
            },
            None => Turn::Pass {
                ms: self.rng.random_range(1..600),
            },
        })
    }

    /// A turn that helps an answer of the cluster to arrive after a later write of others has been delivered,
    /// and a delete to follow an earlier one whose sender has given up.
    fn overtaken(&mut self, world: &World<'_>) -> Option<Turn> {
        let step = self.aim.1;
        let aimed = matches!(step, Step::Get | Step::Release | Step::Delete);
        if !aimed || !self.rng.random_bool(0.4) {
            return None;
        }
        let who = self.who(world);
        let process = &world.processes[who];
        let asked = process.requests.iter().position(|request| Step::of(request) == step);
        if step == Step::Delete && asked.is_some() && !world.abandoned.late.is_empty() {
            return Some(Turn::LateRequest { pick: 0 });
        }
        let on_its_way = process.answers.iter().position(|(answered, ..)| *answered == step);
        let Some(pick) = on_its_way else {
            return asked.map(|pick| Turn::CarryOut {
                who,
                pick,
                fault: None,
                hold: true,
            });
        };
        let cluster = world.api.cluster();
        let news = |from| cluster.next_change(from).is_ok_and(|change| change.is_some());
        if matches!(process.watch, Watch::Open(from) if process.wants_events() && news(from)) {
            return Some(Turn::Event { who });
        }
        let object = process.answers[pick]
            .1
            .as_ref()
            .and_then(|uid| cluster.find_uid(&uid.0));
        let name = object.and_then(|object| NAMES.iter().position(|known| *known == object.name));
        match name {
            Some(name) if self.rng.random_bool(0.5) => Some(Turn::User(UserAction {
                name,
                what: ActionKind::SetValue(self.rng.random_range(0..100)),
            })),
            Some(_) | None => Some(Turn::Arrive { who, pick }),
        }
    }

    /// The turn that causes the aimed fault in the aimed step, if that step is in flight.
    fn aimed(&mut self, world: &World<'_>) -> Option<Turn> {
        let (fault, step) = self.aim;
        let who = self.who(world);
        let process = &world.processes[who];
        if !self.rng.random_bool(0.3) || !process.steps().contains(&step) {
            return None;
        }
        let asked = process.requests.iter().position(|request| Step::of(request) == step);
        let carry_out = |pick, fault, hold| Some(Turn::CarryOut { who, pick, fault, hold });
        if fault.is_of_a_request() {
            return match process.watch {
                Watch::Opening(_) if step == Step::OpenWatch => Some(Turn::OpenWatch {
                    who,
                    fault: Some(fault),
                }),
                _ if step == Step::Watch => Some(Turn::Compact),
                _ => carry_out(asked?, Some(fault), false),
            };
        }
        match fault {
            Fault::CrashAfter if asked.is_some() => carry_out(asked?, None, true),
            Fault::CrashBefore | Fault::CrashAfter => Some(Turn::Crash {
                who,
                effective: self.rng.random(),
            }),
            Fault::Stop => Some(Turn::Stop { who }),
            Fault::WatchBreaks | Fault::WatchEnds => Some(Turn::EndWatch {
                who,
                broken: fault == Fault::WatchBreaks,
            }),
            Fault::Replay => Some(Turn::Replay { who, events: 3 }),
            Fault::Compaction => Some(Turn::Compact),
            Fault::Restoration => Some(Turn::Restore),
            Fault::ClockJump => Some(self.clock(who)),
            Fault::ClusterAway | Fault::DatabaseAway | Fault::DiskFull => {
                if self.rng.random_bool(0.5) && step.class() != Class::Idle {
                    return carry_out(asked?, None, false);
                }
                Some(self.outage(fault))
            }
            _ => None,
        }
    }
}

/// The name of an object that a request stores.
fn stored_name(request: &Output) -> Option<&str> {
    let Output::Write(_, writes) = request else {
        return None;
    };
    writes.iter().find_map(|write| match write {
        RowWrite::Store { version, .. } => Some(&*version.metadata.name),
        RowWrite::SoftDelete { .. } | RowWrite::Record { .. } => None,
    })
}
