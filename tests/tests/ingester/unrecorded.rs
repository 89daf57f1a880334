//! Objects of which the database refuses even the record that it refused them.

use kindex_model::object::Uid;
use kindex_runtime::message::{Effect, EffectDone, Input, Output};
use kindex_runtime::settings::Settings;

use super::bench::{Bench, Thing, live, refused, settled, thing, write_of};
use super::driver::Log;

/// A database that refuses this object, and its records while `records` is not set.
struct Database {
    poison: Uid,
    takes_records: bool,
    /// Batches that it refused, by their uids.
    refused: Vec<Vec<Uid>>,
    stored: Vec<Uid>,
    attempts_to_record: usize,
}

impl Database {
    fn new(poison: &Thing) -> Self {
        Self {
            poison: Uid::from(&*poison.uid),
            takes_records: false,
            refused: Vec::new(),
            stored: Vec::new(),
            attempts_to_record: 0,
        }
    }

    /// Answers everything that is asked, until nothing is.
    fn answer(&mut self, bench: &mut Bench, mut pending: Vec<Output>) {
        while !pending.is_empty() {
            let next = match pending.remove(0) {
                Output::ReadRows(ticket, _) => bench.step(Input::Rows(ticket, Ok(Vec::new()))),
                Output::Write(ticket, writes) => {
                    let uids: Vec<Uid> = writes.iter().map(|write| write.uid().clone()).collect();
                    if uids.contains(&self.poison) {
                        self.refused.push(uids);
                        bench.step(Input::Written(ticket, Err(refused())))
                    } else {
                        self.stored.extend(uids.iter().cloned());
                        bench.written(ticket, uids.len())
                    }
                }
                Output::Effect(uid, Effect::Quarantine { .. }) => {
                    self.attempts_to_record += 1;
                    let recorded = if self.takes_records { Ok(()) } else { Err(refused()) };
                    bench.step(Input::Effect(uid, EffectDone::Quarantined(recorded)))
                }
                other => panic!("unexpected {other:?}"),
            };
            pending.extend(next);
        }
    }
}

#[test]
fn an_object_without_a_quarantine_record_is_logged_once_and_blocks_no_other() {
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.subscriber());
    let mut bench = Bench::watching(Settings::default());
    let poison = thing("poison", 5);
    let mut database = Database::new(&poison);
    let read = bench.applied(&poison);
    database.answer(&mut bench, read);
    let reported = |line: &str| log.text().matches(line).count();
    let neither = "The database refuses both this object and a quarantine record of it";
    assert_eq!((reported(neither), bench.controller.status().unrecorded), (1, 1));
    let before = (log.text().lines().count(), database.refused.len());

    for round in 0..20 {
        // Others come, one of which waits for the next batch when the next attempt is due.
        let [first, second] = ["first", "second"].map(|name| format!("{name}-{round:02}"));
        let mut pending = bench.applied(&thing(&first, 10 + 2 * round));
        pending.extend(bench.applied(&thing(&second, 11 + 2 * round)));
        pending.extend(bench.wait());
        database.answer(&mut bench, pending);
        for other in [first, second] {
            assert!(database.stored.contains(&Uid::from(&*other)), "{other} is stored");
        }
    }
    assert!(database.refused.len() >= before.1 + 20, "it is retried over and over");
    assert!(
        database.refused[before.1..].iter().all(|batch| batch.len() == 1),
        "no other object is refused with it: {:?}",
        database.refused
    );
    assert_eq!(
        log.text().lines().count(),
        before.0,
        "nothing is said twice:\n{}",
        log.text()
    );
    let status = bench.controller.status();
    assert_eq!((status.pending, status.unrecorded, status.quarantined.len()), (1, 1, 1));
    assert_eq!(bench.checkpoints.last(), Some(&settled(4)), "a restart sees it again");

    database.takes_records = true;
    let pending = bench.wait();
    database.answer(&mut bench, pending);
    let status = bench.controller.status();
    assert_eq!((status.pending, status.unrecorded, status.quarantined.len()), (0, 0, 1));
    assert_eq!(reported("The database has taken the object, or its record"), 1);
    assert_eq!(bench.checkpoints.last(), Some(&settled(49)));
}

#[test]
fn an_object_that_was_stored_is_logged_again_when_it_is_refused_again() {
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.subscriber());
    let mut bench = Bench::watching(Settings::default());
    let mut database = Database::new(&thing("poison", 5));
    let read = bench.applied(&thing("poison", 5));
    database.answer(&mut bench, read);
    // Its next version fits.
    let read = bench.applied(&thing("poison", 6));
    let (ticket, _) = write_of(&bench.no_rows(&read)).expect("it is tried at once");
    bench.written(ticket, 1);
    assert_eq!(bench.controller.status().unrecorded, 0);
    let read = bench.applied(&thing("poison", 7));
    let write = bench.rows(&read, vec![live("poison", 6)]);
    database.answer(&mut bench, write);
    let lines = log.text();
    let neither = lines.matches("The database refuses both this object and a quarantine record of it");
    assert_eq!((neither.count(), database.attempts_to_record), (2, 2), "{lines}");
}
