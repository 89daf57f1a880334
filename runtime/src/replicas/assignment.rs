//! Which replica holds which shard, and what this replica does about it. Pure: lease records in, actions out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The three durations of Kubernetes' leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A lease that was not renewed for so long is free (`leaseDuration`).
    pub lease: Duration,
    /// A holder that could not renew for so long stops, before others may begin (`renewDeadline`).
    pub renew: Duration,
    /// The pause between two attempts (`retryPeriod`).
    pub retry: Duration,
}

impl Timing {
    /// The proportions of Kubernetes' own components: two thirds and two fifteenths of the lease.
    /// <https://pkg.go.dev/k8s.io/client-go/tools/leaderelection>
    pub fn of_lease(lease: Duration) -> Self {
        Self {
            lease,
            renew: lease * 2 / 3,
            retry: lease * 2 / 15,
        }
    }
}

/// What a lease is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaseSubject {
    /// A replica is alive.
    Member(String),
    /// A replica works on a shard.
    Shard(usize),
}

/// A lease as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty for nobody.
    pub holder: String,
    /// Changes with every renewal.
    pub version: String,
}

/// What a replica does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// Write the lease with this replica as its holder, if it has not changed since it was read.
    Write(LeaseSubject),
    /// Drain the work on a shard, then release its lease.
    GiveUp(usize),
    /// Delete the lease of a replica that ended long ago.
    Delete(LeaseSubject),
}

/// The shards of all replicas, as one replica sees them.
#[derive(Debug)]
pub struct Assignment {
    me: String,
    shards: usize,
    timing: Timing,
    /// Each record, and when it was first seen in this version, by our own clock.
    seen: BTreeMap<LeaseSubject, (Record, Duration)>,
    /// Our shards, and when the lease of each was last written.
    ours: BTreeMap<usize, Duration>,
    leaving: BTreeSet<usize>,
}

impl Assignment {
    /// A replica that has just started.
    pub fn new(me: String, shards: usize, timing: Timing) -> Self {
        Self {
            me,
            shards,
            timing,
            seen: BTreeMap::new(),
            ours: BTreeMap::new(),
            leaving: BTreeSet::new(),
        }
    }

    /// The shards that this replica works on: those whose leases it has, and has renewed in time.
    pub fn ours(&self) -> impl Iterator<Item = usize> {
        self.ours.keys().copied().filter(|shard| !self.leaving.contains(shard))
    }

    /// The record as it was read last.
    pub fn record(&self, subject: &LeaseSubject) -> Option<&Record> {
        self.seen.get(subject).map(|(record, _)| record)
    }

    /// Takes the current leases.
    pub fn observe(&mut self, now: Duration, records: impl IntoIterator<Item = (LeaseSubject, Record)>) {
        let mut before = std::mem::take(&mut self.seen);
        for (subject, record) in records {
            let known = before.remove(&subject).filter(|(known, _)| *known == record);
            let since = known.map_or(now, |(_, since)| since);
            self.seen.insert(subject, (record, since));
        }
        let lost: Vec<usize> = self
            .ours
            .keys()
            .copied()
            .filter(|shard| !self.is_mine(*shard))
            .collect();
        for shard in lost {
            self.forget(shard);
        }
    }

    /// Takes a lease that was written. It is ours from `began`, when the request was sent.
    pub fn written(&mut self, subject: LeaseSubject, began: Duration, record: Record) {
        if let LeaseSubject::Shard(shard) = subject {
            self.ours.insert(shard, began);
        }
        self.seen.insert(subject, (record, began));
    }

    /// Takes a shard off our list: it was released, or lost.
    pub fn forget(&mut self, shard: usize) {
        self.ours.remove(&shard);
        self.leaving.remove(&shard);
    }

    /// Takes the shards off our list whose leases were not renewed in time.
    pub fn expire(&mut self, now: Duration) {
        let late = |written: &Duration| now.saturating_sub(*written) >= self.timing.renew;
        let late: Vec<usize> = self
            .ours
            .iter()
            .filter(|(_, at)| late(at))
            .map(|(shard, _)| *shard)
            .collect();
        late.into_iter().for_each(|shard| self.forget(shard));
    }

    /// What to do now.
    pub fn decide(&mut self, now: Duration) -> Vec<LeaseAction> {
        let mut actions = vec![LeaseAction::Write(LeaseSubject::Member(self.me.clone()))];
        self.expire(now);
        actions.extend(self.long_gone(now).map(LeaseAction::Delete));
        actions.extend(
            self.ours
                .keys()
                .map(|shard| LeaseAction::Write(LeaseSubject::Shard(*shard))),
        );
        let counts = self.counts(now);
        let mine = self.ours().count();
        let others = counts
            .iter()
            .filter(|(member, _)| **member != self.me)
            .map(|(_, count)| *count);
        let fewest = others.min();
        if let Some(shard) = self
            .ours()
            .last()
            .filter(|_| fewest.is_some_and(|fewest| mine >= fewest + 2))
        {
            self.leaving.insert(shard);
            actions.push(LeaseAction::GiveUp(shard));
        } else if fewest.is_none_or(|fewest| mine <= fewest) {
            let free = (0..self.shards).find(|shard| !self.ours.contains_key(shard) && self.is_free(*shard, now));
            actions.extend(free.map(|shard| LeaseAction::Write(LeaseSubject::Shard(shard))));
        }
        actions
    }

    /// How many shards each live replica holds.
    fn counts(&self, now: Duration) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (subject, (record, since)) in &self.seen {
            if self.is_live(record, *since, now) {
                let count: &mut usize = counts.entry(record.holder.clone()).or_default();
                *count += usize::from(matches!(subject, LeaseSubject::Shard(_)));
            }
        }
        counts
    }

    /// Leases of replicas that ended without deleting theirs.
    fn long_gone(&self, now: Duration) -> impl Iterator<Item = LeaseSubject> + '_ {
        let gone = self.timing.lease * 10;
        let members = self
            .seen
            .iter()
            .filter(|(subject, _)| matches!(subject, LeaseSubject::Member(_)));
        let gone = members.filter(move |(_, (_, since))| now.saturating_sub(*since) >= gone);
        gone.map(|(subject, _)| subject.clone())
    }

    fn is_live(&self, record: &Record, since: Duration, now: Duration) -> bool {
        !record.holder.is_empty() && now.saturating_sub(since) < self.timing.lease
    }

    fn is_free(&self, shard: usize, now: Duration) -> bool {
        let seen = self.seen.get(&LeaseSubject::Shard(shard));
        seen.is_none_or(|(record, since)| !self.is_live(record, *since, now))
    }

    fn is_mine(&self, shard: usize) -> bool {
        let seen = self.seen.get(&LeaseSubject::Shard(shard));
        seen.is_some_and(|(record, _)| record.holder == self.me)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    const TICK: Duration = Duration::from_secs(2);

    /// The leases, and replicas that read them in turn. Some hang, some die, some start.
    struct World {
        leases: BTreeMap<LeaseSubject, Record>,
        replicas: Vec<(Assignment, Duration)>,
        version: usize,
        now: Duration,
    }

    impl World {
        fn new(replicas: usize, shards: usize) -> Self {
            let timing = Timing::of_lease(Duration::from_secs(15));
            let assignment = |number: usize| Assignment::new(format!("replica-{number}"), shards, timing);
            Self {
                leases: BTreeMap::new(),
                replicas: (0..replicas)
                    .map(|number| (assignment(number), Duration::ZERO))
                    .collect(),
                version: 0,
                now: Duration::ZERO,
            }
        }

        /// One look of one replica; its clock has an offset of its own.
        fn sync(&mut self, index: usize) {
            let (assignment, offset) = &mut self.replicas[index];
            let now = self.now + *offset;
            assignment.observe(now, self.leases.clone());
            for action in assignment.decide(now) {
                match action {
                    LeaseAction::Write(subject) => {
                        if self.leases.get(&subject) == assignment.record(&subject) {
                            self.version += 1;
                            let record = Record {
                                holder: assignment.me.clone(),
                                version: self.version.to_string(),
                            };
                            self.leases.insert(subject.clone(), record.clone());
                            assignment.written(subject, now, record);
                        }
                    }
                    LeaseAction::GiveUp(shard) => {
                        let lease = self.leases.get_mut(&LeaseSubject::Shard(shard)).expect("it is held");
                        lease.holder.clear();
                        assignment.forget(shard);
                    }
                    LeaseAction::Delete(subject) => {
                        self.leases.remove(&subject);
                    }
                }
            }
        }

        fn round(&mut self) {
            self.now += TICK;
            for index in 0..self.replicas.len() {
                self.sync(index);
            }
        }

        fn counts(&self) -> Vec<usize> {
            self.replicas
                .iter()
                .map(|(assignment, _)| assignment.ours().count())
                .collect()
        }
    }

    #[test]
    fn one_of_two_leads_and_the_other_follows_when_it_dies() {
        let mut world = World::new(2, 1);
        world.round();
        assert_eq!(world.counts(), [1, 0]);
        world.replicas.remove(0);
        for _ in 0..7 {
            world.round();
        }
        assert_eq!(world.counts(), [0], "its lease lasts");
        world.round();
        world.round();
        assert_eq!(world.counts(), [1]);
    }

    #[test]
    fn a_replica_that_comes_gets_its_part_and_one_that_goes_leaves_its_part() {
        let mut world = World::new(1, 13);
        (0..13).for_each(|_| world.round());
        assert_eq!(world.counts(), [13]);
        let timing = Timing::of_lease(Duration::from_secs(15));
        for number in 1..3 {
            let assignment = Assignment::new(format!("replica-{number}"), 13, timing);
            world.replicas.push((assignment, Duration::from_secs(900 * number)));
        }
        (0..20).for_each(|_| world.round());
        let mut counts = world.counts();
        counts.sort_unstable();
        assert_eq!(counts, [4, 4, 5]);
        world.replicas.remove(1);
        (0..30).for_each(|_| world.round());
        let mut counts = world.counts();
        counts.sort_unstable();
        assert_eq!(counts, [6, 7]);
    }

    #[test]
    fn who_cannot_renew_stops_before_others_begin() {
        let timing = Timing::of_lease(Duration::from_secs(15));
        let mut assignment = Assignment::new("a".to_owned(), 1, timing);
        assert_eq!(assignment.decide(Duration::ZERO).len(), 2);
        let record = Record {
            holder: "a".to_owned(),
            version: "1".to_owned(),
        };
        assignment.written(LeaseSubject::Shard(0), Duration::ZERO, record);
        assignment.decide(Duration::from_secs(9));
        assert_eq!(assignment.ours().count(), 1);
        let actions = assignment.decide(Duration::from_secs(10));
        assert!(
            !actions.contains(&LeaseAction::Write(LeaseSubject::Shard(0))),
            "{actions:?}"
        );
        assert_eq!(assignment.ours().count(), 0);
    }

    /// Replicas hang for any time and continue: in the end every shard has one replica, and each has about as many.
    #[test]
    fn whatever_happens_every_shard_finds_one_replica() {
        for seed in 0..200 {
            let mut random = StdRng::seed_from_u64(seed);
            let (replicas, shards) = (random.random_range(1..5), random.random_range(1..9));
            let mut world = World::new(replicas, shards);
            for (_, offset) in &mut world.replicas {
                *offset = Duration::from_secs(random.random_range(0..100_000));
            }
            for _ in 0..200 {
                world.now += Duration::from_millis(random.random_range(0..6_000));
                world.sync(random.random_range(0..replicas));
            }
            (0..60).for_each(|_| world.round());
            let counts = world.counts();
            assert_eq!(counts.iter().sum::<usize>(), shards, "seed {seed}: {counts:?}");
            let (least, most) = (counts.iter().min(), counts.iter().max());
            let apart = most.expect("one") - least.expect("one");
            assert!(apart <= 1, "seed {seed}: {counts:?}");
        }
    }
}
