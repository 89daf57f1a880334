//! A reference against a deletion: every order of their steps, on a cluster that keeps one object and its version. A
//! model: the decisions are the real ones, and the steps of the requests are played. In `tests/tests/api`,
//! `of_a_reference_and_a_deletion_at_the_same_time_one_wins` meets the real code with some of these orders.

use super::decide::{Change, Decision, Presence, Seen, decide};

/// The object, as the cluster has it.
#[derive(Clone, Debug)]
struct World {
    version: u32,
    is_there: bool,
    deleting: bool,
    /// Whether it has the reference of the holder.
    held: bool,
    /// Whether somebody has begun to take it down, since nothing held it.
    draining: bool,
}

/// How far a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Read,
    /// With what was decided, for the version that was read.
    Write(Decision, u32),
    Done(u16),
}

#[derive(Clone, Debug)]
struct State {
    world: World,
    put: Step,
    /// The deletion by a user: one step, since the cluster does it.
    delete: Step,
    /// Whoever takes the object down: reads that nothing holds it, then writes that it goes.
    drain: Step,
}

impl State {
    fn new(held: bool) -> Self {
        Self {
            world: World {
                version: 1,
                is_there: true,
                deleting: false,
                held,
                draining: false,
            },
            put: Step::Read,
            delete: Step::Read,
            drain: Step::Read,
        }
    }

    fn put(&mut self) {
        let World {
            version,
            is_there,
            deleting,
            held,
            ..
        } = self.world;
        self.put = match self.put {
            Step::Read => {
                let presence = match (is_there, deleting) {
                    (false, _) => Presence::Absent,
                    (true, false) => Presence::Staying,
                    (true, true) => Presence::Leaving,
                };
                let seen = Seen {
                    presence,
                    held,
                    itself: false,
                    is_as_read: true,
                };
                match decide(Change::Put, seen) {
                    Decision::Done => Step::Done(200),
                    Decision::Refuse(_) => Step::Done(409),
                    decision @ (Decision::Add | Decision::Remove) => Step::Write(decision, version),
                }
            }
            Step::Write(_, read) if is_there && read == version => {
                self.world.version += 1;
                self.world.held = true;
                Step::Done(200)
            }
            Step::Write(..) => Step::Read,
            Step::Done(code) => Step::Done(code),
        };
    }

    fn delete(&mut self) {
        self.world.deleting = true;
        self.world.version += 1;
        self.delete = Step::Done(200);
    }

    fn drain(&mut self) {
        let World {
            version,
            is_there,
            deleting,
            held,
            ..
        } = self.world;
        self.drain = match self.drain {
            Step::Read if deleting && !held => Step::Write(Decision::Remove, version),
            Step::Read => Step::Done(0),
            Step::Write(_, read) if is_there && read == version => {
                self.world.draining = true;
                self.world.version += 1;
                Step::Done(200)
            }
            Step::Write(..) => Step::Read,
            Step::Done(code) => Step::Done(code),
        };
    }
}

/// Goes on with one of those who race.
type Take = fn(&mut State);

/// Goes through every order; counts the ends.
fn walk(state: &State, ends: &mut Vec<State>) {
    let world = &state.world;
    assert!(
        !(world.draining && world.held),
        "it is taken down while somebody uses it: {state:?}"
    );
    let mut is_end = true;
    let steps: [(&Step, Take); 3] = [
        (&state.put, State::put),
        (&state.delete, State::delete),
        (&state.drain, State::drain),
    ];
    for (step, take) in steps {
        if !matches!(step, Step::Done(_)) {
            is_end = false;
            let mut next = state.clone();
            take(&mut next);
            walk(&next, ends);
        }
    }
    if is_end {
        ends.push(state.clone());
    }
}

#[test]
fn either_the_reference_wins_or_the_deletion_does() {
    let mut ends = Vec::new();
    walk(&State::new(false), &mut ends);
    for end in &ends {
        let answered = end.put == Step::Done(200);
        assert_eq!(answered, end.world.held, "what was answered is what is so: {end:?}");
        assert!(end.world.deleting);
    }
    let won = ends.iter().filter(|end| end.world.held).count();
    assert!(won > 0 && won < ends.len(), "both happen: {won} of {}", ends.len());
}

#[test]
fn a_holder_is_never_refused_what_it_has() {
    let mut ends = Vec::new();
    walk(&State::new(true), &mut ends);
    assert!(!ends.is_empty());
    assert!(
        ends.iter()
            .all(|end| end.put == Step::Done(200) && end.world.held && !end.world.draining)
    );
}
