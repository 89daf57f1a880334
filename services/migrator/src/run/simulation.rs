//! A migration of some objects by a process that is killed and resumes from what it saved, while others write, create
//! and delete, webhooks refuse for a while, and lists expire. The rule: where the run succeeds, every object is in the
//! target version.

use std::collections::BTreeMap;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::*;

const SEEDS: u64 = 3_000;
const PAGE: usize = 3;

/// What is wrong with the migrator that is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// The first pass counts as a verification.
    BelieveTheFirstPass,
    /// Progress is saved before the page is written.
    SaveFirst,
    /// A refused object is passed over.
    ForgetRefused,
}

struct World {
    random: Xoshiro256PlusPlus,
    bug: Bug,
    /// Whether each object is in the target version, and its resource version.
    objects: BTreeMap<u32, (bool, u64)>,
    version: u64,
    /// Requests that are still refused.
    refusals: u32,
    /// Writes of others that a handler still makes in the version before, all of them during the first pass: that is
    /// what the settle time is for.
    late_writes: u32,
}

impl World {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let number = random.random_range(0..10);
        let (refusals, late_writes) = (random.random_range(0..3), random.random_range(0..4));
        Self {
            random,
            bug,
            objects: (0..number).map(|name| (name, (false, 1))).collect(),
            version: 1,
            refusals,
            late_writes,
        }
    }

    /// Somebody else writes, creates or deletes an object.
    fn others(&mut self) {
        let name = self.random.random_range(0..12);
        self.version += 1;
        if self.random.random_bool(0.2) {
            self.objects.remove(&name);
            return;
        }
        let late = self.late_writes > 0 && self.objects.contains_key(&name);
        self.late_writes -= u32::from(late);
        self.objects.insert(name, (!late, self.version));
    }

    fn patch(&mut self, name: u32, listed: u64) -> Written {
        match self.objects.get(&name) {
            None => Written::Gone,
            Some((_, version)) if *version != listed => Written::Conflict,
            Some(_) if self.refusals > 0 && self.random.random_bool(0.2) => {
                self.refusals -= 1;
                Written::Refused {
                    why: "403: not now".to_owned(),
                }
            }
            Some((true, _)) => Written::Unchanged,
            Some((false, _)) => {
                self.version += 1;
                self.objects.insert(name, (true, self.version));
                Written::Rewritten
            }
        }
    }

    /// One page, as it is listed, patched and saved; `None` where the process was killed before it saved.
    fn page(&mut self, saved: &mut Run) -> Option<Next> {
        if saved.token.is_some() && self.random.random_bool(0.1) {
            return Some(if self.random.random_bool(0.5) {
                let token = saved.token.clone().unwrap_or_default();
                saved.go_on(token)
            } else {
                saved.start_over()
            });
        }
        let from: u32 = saved.token.as_ref().map_or(0, |token| token.parse().expect("a number"));
        let listed: Vec<_> = self
            .objects
            .range(from..)
            .map(|(name, (_, version))| (*name, *version))
            .collect();
        let token = listed.get(PAGE).map(|(name, _)| name.to_string());
        let mut run = saved.clone();
        let mut outcomes = Vec::new();
        if self.bug == Bug::SaveFirst && token.is_some() {
            saved.token.clone_from(&token);
        }
        for (name, version) in listed.into_iter().take(PAGE) {
            if self.random.random_bool(0.3) {
                self.others();
            }
            if self.random.random_bool(0.03) {
                return None;
            }
            let written = self.patch(name, version);
            let refused = matches!(written, Written::Refused { .. });
            if !(refused && self.bug == Bug::ForgetRefused) {
                let object = name.to_string();
                outcomes.push(Outcome { object, written });
            }
        }
        let next = run.page(outcomes, token);
        let next = match next {
            Next::Page if self.bug == Bug::BelieveTheFirstPass && run.passes == 1 => Next::End(Verdict::Succeeded),
            other => other,
        };
        if run.passes > 0 {
            self.late_writes = 0;
        }
        *saved = run;
        Some(next)
    }
}

fn play(seed: u64, bug: Bug) -> Result<Verdict, String> {
    let mut world = World::new(seed, bug);
    let mut run = Run::default();
    for _ in 0..1_000 {
        let Some(Next::End(verdict)) = world.page(&mut run) else {
            continue;
        };
        let stale = world.objects.iter().find(|(_, (current, _))| !current);
        return match (verdict, stale) {
            (Verdict::Succeeded, Some((name, _))) => Err(format!("object {name} is in the version before")),
            (verdict, _) => Ok(verdict),
        };
    }
    Err("it never ends".to_owned())
}

#[test]
fn a_run_that_succeeds_leaves_no_object_in_another_version() {
    let mut succeeded = 0;
    for seed in 0..SEEDS {
        match play(seed, Bug::None) {
            Ok(verdict) => succeeded += u64::from(verdict == Verdict::Succeeded),
            Err(broken) => panic!("seed {seed}: {broken}"),
        }
    }
    assert!(succeeded > SEEDS / 4, "{succeeded} of {SEEDS}");
}

#[test]
fn every_bug_is_found() {
    for bug in [Bug::BelieveTheFirstPass, Bug::SaveFirst, Bug::ForgetRefused] {
        let found = (0..SEEDS).find(|seed| play(*seed, bug).is_err());
        assert!(found.is_some(), "{bug:?} is not found in {SEEDS} seeds");
    }
}
