//! Whose turn it is in sweeps over holders that are refused.

use super::*;

fn holder(uid: &str) -> Holder {
    Holder {
        key: None,
        uid: uid.to_owned(),
        reference: None,
        version: None,
        edges: Vec::new(),
    }
}

fn denied() -> ClusterError {
    ClusterError::Refused("admission webhook \"a.b.c\" denied the request: no".to_owned())
}

/// When a holder of the stage is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// As soon as it was read.
    AtOnce,
    /// Once all of its page were read.
    Reserved,
}

/// So many holders on pages of this size, each of which is changed like this, and refused or not.
struct Stage {
    rounds: Rounds,
    holders: usize,
    page: usize,
    change: fn(usize) -> Change,
    is_denied: fn(usize) -> bool,
}

impl Stage {
    /// All that are on one page, are deleted and denied.
    fn of(holders: usize) -> Self {
        Self {
            rounds: Rounds::default(),
            holders,
            page: holders,
            change: |_| Change::Reserved,
            is_denied: |_| true,
        }
    }

    /// One sweep, which reads all. Those that were sent a request, how many of these were refused, and the names that
    /// are shown first.
    fn sweep(&self) -> (Vec<usize>, usize, Vec<String>) {
        let mut refusals = Refusals::new(self.rounds.of("t"));
        let mut sent = Vec::new();
        let all: Vec<usize> = (0..self.holders).collect();
        for page in all.chunks(self.page) {
            let mut reserved = Vec::new();
            for at in page {
                let turn = refusals.next_turn();
                match (self.change)(*at) {
                    Change::AtOnce if refusals.may_send(turn) => self.send(*at, &mut refusals, &mut sent),
                    Change::Reserved if refusals.reserve(turn) => reserved.push((turn, *at)),
                    Change::AtOnce | Change::Reserved => {}
                }
            }
            for (turn, at) in reserved {
                if refusals.may_send_reserved(turn) {
                    self.send(at, &mut refusals, &mut sent);
                }
            }
        }
        let all = all.iter().map(|at| format!("{at:04}"));
        let named = all.filter(|name| refusals.names(name)).collect();
        let (refused, round) = refusals.end(true);
        self.rounds.set("t", round);
        (sent, refused.map_or(0, |refused| refused.count), named)
    }

    fn send(&self, at: usize, refusals: &mut Refusals, sent: &mut Vec<usize>) {
        sent.push(at);
        if (self.is_denied)(at) {
            let refused = refusals.refuse(&holder(&format!("{at:04}")), denied());
            refused.expect("the sweep goes on");
        }
    }

    /// The sweeps of one round: whom they have sent something, each once.
    fn round(&self) -> Vec<usize> {
        let mut sent = BTreeSet::new();
        for _ in 0..=self.holders {
            let (now, refused, _) = self.sweep();
            assert!(refused <= REFUSED_MAX, "{refused}");
            sent.extend(now);
            if self.rounds.of("t") == Round::default() {
                return sent.into_iter().collect();
            }
        }
        panic!("the round does not end: {sent:?}");
    }

    fn expect_all(&self) {
        assert_eq!(self.round(), (0..self.holders).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_refused_is_counted_and_the_first_one_is_named() {
    let mut refusals = Refusals::default();
    for uid in ["b", "a"] {
        refusals.refuse(&holder(uid), denied()).expect("the sweep goes on");
    }
    let (refused, round) = refusals.end(true);
    let expected = RefusedHolders {
        first: "b".to_owned(),
        why: "admission webhook \"a.b.c\" denied the request: no".to_owned(),
        count: 2,
        leaves_others: false,
    };
    assert_eq!((refused, round), (Some(expected), Round::default()));
    let expired = ClusterError::Expired("a moment ago".to_owned());
    Refusals::default()
        .refuse(&holder("a"), expired)
        .expect_err("it may fail for all of them");
}

/// As if a webhook that denies all were sent thousands of requests every few seconds, or only the first ones, for ever.
#[test]
fn a_sweep_ends_its_requests_after_so_many_refusals_and_the_next_one_goes_on_behind_them() {
    let stage = Stage::of(2 * REFUSED_MAX + 1);
    let sweeps: Vec<_> = (0..4).map(|_| stage.sweep().0).collect();
    let first: Vec<usize> = (0..REFUSED_MAX).collect();
    let second: Vec<usize> = (REFUSED_MAX..2 * REFUSED_MAX).collect();
    assert_eq!(sweeps, [first.clone(), second, vec![2 * REFUSED_MAX], first]);
}

#[test]
fn as_many_as_a_sweep_may_be_refused_are_tried_in_each_sweep() {
    let stage = Stage::of(REFUSED_MAX);
    for _ in 0..2 {
        assert_eq!(stage.sweep().0.len(), REFUSED_MAX);
    }
}

/// As if a page that is denied kept those on it or behind it, whatever is to be done about them.
#[test]
fn whoever_is_not_refused_is_changed_within_a_round_wherever_it_is() {
    Stage {
        is_denied: |_| false,
        ..Stage::of(500)
    }
    .expect_all();
    let changes: [fn(usize) -> Change; 4] = [
        |_| Change::AtOnce,
        |at: usize| {
            if at.is_multiple_of(2) {
                Change::AtOnce
            } else {
                Change::Reserved
            }
        },
        |at| if at < 100 { Change::AtOnce } else { Change::Reserved },
        |at| if at < 100 { Change::Reserved } else { Change::AtOnce },
    ];
    let denies: [fn(usize) -> bool; 3] = [|_| true, |at: usize| !at.is_multiple_of(3), |at| at < 450];
    for change in changes {
        for is_denied in denies {
            for page in [1, 60, 200, 500] {
                Stage {
                    page,
                    change,
                    is_denied,
                    ..Stage::of(500)
                }
                .expect_all();
            }
        }
    }
}

/// As if an object waited for others with each sweep: nobody would ever be told for whom.
#[test]
fn the_sweeps_of_a_round_name_the_same_holders_first() {
    let stage = Stage::of(3 * REFUSED_MAX);
    let first: Vec<String> = (0..NAMED_MAX).map(|at| format!("{at:04}")).collect();
    for _ in 0..6 {
        assert_eq!(stage.sweep().2, first);
    }
}

#[test]
fn a_sweep_that_has_not_read_all_keeps_the_round_and_another_object_has_its_own() {
    let rounds = Rounds::default();
    let begun = Round {
        passed: 7,
        named: BTreeSet::from(["a".to_owned()]),
    };
    rounds.set("t", begun.clone());
    let (_, cut) = Refusals::new(rounds.of("t")).end(false);
    assert_eq!(cut, begun);
    assert_eq!(rounds.of("u"), Round::default());
    let (_, whole) = Refusals::new(rounds.of("t")).end(true);
    rounds.set("t", whole);
    let left = |rounds: &Rounds| {
        let known = rounds.lock();
        (known.passed.len(), known.named.len())
    };
    assert_eq!(left(&rounds), (0, 0), "nothing is left of a round that is over");
    rounds.set("t", begun);
    rounds.forget("t");
    assert_eq!(left(&rounds), (0, 0), "nor of one whose object is gone");
}

/// As if the objects whose uids come first began anew with each sweep, so that their other holders had no turn.
#[test]
fn no_more_rounds_are_remembered_than_so_many_and_those_that_were_set_last_are() {
    let rounds = Rounds::default();
    let named = BTreeSet::from(["a".to_owned()]);
    for number in (0..=POSITIONS_MAX).rev() {
        let round = Round {
            passed: 1,
            named: named.clone(),
        };
        rounds.set(&format!("{number:06}"), round);
    }
    let of = |number: usize| {
        let round = rounds.of(&format!("{number:06}"));
        (round.passed, round.named.len())
    };
    assert_eq!(of(POSITIONS_MAX), (0, 0), "it was set first");
    assert_eq!((of(POSITIONS_MAX - 1), of(NAMES_MAX)), ((1, 0), (1, 0)));
    assert_eq!((of(NAMES_MAX - 1), of(0)), ((1, 1), (1, 1)));
    assert_eq!(rounds.lock().passed.len(), POSITIONS_MAX);
}

/// As if deletions that all succeed began a round, which would send nothing to those who come first.
#[test]
fn a_sweep_that_is_refused_nothing_begins_no_round() {
    let stage = Stage {
        change: |at| {
            if at < REFUSED_MAX {
                Change::Reserved
            } else {
                Change::AtOnce
            }
        },
        is_denied: |_| false,
        ..Stage::of(REFUSED_MAX + 1)
    };
    assert_eq!(
        stage.sweep().0.len(),
        REFUSED_MAX,
        "the last one would have been too many"
    );
    assert_eq!(stage.rounds.of("t"), Round::default());
}

#[test]
fn a_sweep_that_was_refused_too_many_says_that_others_are_left() {
    let leaves_others = |refused: usize| {
        let mut refusals = Refusals::default();
        for number in 0..refused {
            let turn = refusals.next_turn();
            if refusals.may_send(turn) {
                let refused = refusals.refuse(&holder(&number.to_string()), denied());
                refused.expect("the sweep goes on");
            }
        }
        refusals
            .end(true)
            .0
            .map(|refused| (refused.count, refused.leaves_others))
    };
    assert_eq!(leaves_others(REFUSED_MAX), Some((REFUSED_MAX, false)));
    assert_eq!(leaves_others(REFUSED_MAX + 1), Some((REFUSED_MAX, true)));
}
