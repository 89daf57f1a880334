//! A migration of some objects by a process that is killed and resumes from what it saved, while others write, create
//! and delete, webhooks refuse for a while, and lists expire. A page may be listed while the one before it is patched.
//! The rule: where the run succeeds, every object is in the
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
    /// The first page of a pass is listed while the pass before it ends.
    ListTheNextPassAhead,
}

/// A page as it was listed: names with the versions that they had.
struct Listed {
    from: u32,
    objects: Vec<(u32, u64)>,
    token: Option<String>,
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
    /// The next page, where it was listed while the one before it was patched.
    prefetch: Option<Listed>,
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
            prefetch: None,
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

    fn list(&self, from: u32) -> Listed {
        let mut objects: Vec<_> = self
            .objects
            .range(from..)
            .take(PAGE + 1)
            .map(|(name, (_, version))| (*name, *version))
            .collect();
        let next = (objects.len() > PAGE).then(|| objects.pop()).flatten();
        Listed {
            from,
            objects,
            token: next.map(|(name, _)| name.to_string()),
        }
    }

    /// The page that begins there, listed by now or before.
    fn listed(&mut self, from: u32) -> Listed {
        let prefetched = self.prefetch.take().filter(|page| page.from == from);
        prefetched.unwrap_or_else(|| self.list(from))
    }

    /// Where the next page begins that may be listed while this one is patched.
    fn next_of(&self, token: Option<&String>) -> Option<u32> {
        let of_next_pass = self.bug == Bug::ListTheNextPassAhead;
        let next = token.map(|token| token.parse().expect("a number"));
        next.or(of_next_pass.then_some(0))
    }

    /// One page, as it is listed, patched and saved; `None` where the process was killed before it saved.
    fn page(&mut self, saved: &mut Run) -> Option<Next> {
        if saved.token.is_some() && self.random.random_bool(0.1) {
            self.prefetch = None;
            return Some(if self.random.random_bool(0.5) {
                let token = saved.token.clone().unwrap_or_default();
                saved.go_on(token)
            } else {
                saved.start_over()
            });
        }
        let from: u32 = saved.token.as_ref().map_or(0, |token| token.parse().expect("a number"));
        let Listed { objects, token, .. } = self.listed(from);
        let mut run = saved.clone();
        if self.bug == Bug::SaveFirst && token.is_some() {
            saved.token.clone_from(&token);
        }
        let outcomes = self.patch_all(objects, self.next_of(token.as_ref()))?;
        let next = match run.page(outcomes, token) {
            Next::Page if self.bug == Bug::BelieveTheFirstPass && run.passes == 1 => Next::End(Verdict::Succeeded),
            other => other,
        };
        if run.passes > 0 {
            self.late_writes = 0;
        }
        *saved = run;
        Some(next)
    }

    /// Patches a page while the next one is listed, at any time; `None` where the process is killed meanwhile.
    fn patch_all(&mut self, objects: Vec<(u32, u64)>, next: Option<u32>) -> Option<Vec<Outcome>> {
        let lists_at = self.random.random_range(0..=PAGE);
        let mut outcomes = Vec::new();
        for (at, (name, version)) in objects.into_iter().enumerate() {
            if at == lists_at {
                self.prefetch = next.map(|next| self.list(next));
            }
            if self.random.random_bool(0.3) {
                self.others();
            }
            if self.random.random_bool(0.03) {
                self.prefetch = None;
                return None;
            }
            let written = self.patch(name, version);
            let refused = matches!(written, Written::Refused { .. });
            if !(refused && self.bug == Bug::ForgetRefused) {
                let object = name.to_string();
                outcomes.push(Outcome { object, written });
            }
        }
        Some(outcomes)
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
    for bug in [
        Bug::BelieveTheFirstPass,
        Bug::SaveFirst,
        Bug::ForgetRefused,
        Bug::ListTheNextPassAhead,
    ] {
        let found = (0..SEEDS).find(|seed| play(*seed, bug).is_err());
        assert!(found.is_some(), "{bug:?} is not found in {SEEDS} seeds");
    }
}
