//! How long a deletion waits: for the last of those who hold the object, whatever the time is.

use jiff::Timestamp;

use super::*;

#[test]
fn an_object_waits_for_the_last_of_three_holders() {
    let object = deleting(Some(Phase::Deleting));
    let all = ["a", "b", "c"].map(|name| reference(name, false));
    let step = |references: &[HeldReference]| {
        decide(&Input {
            references: references.to_vec(),
            ..input(&object)
        })
    };
    for left in [&all[..], &all[1..], &all[2..]] {
        assert_eq!(step(left), Step::Wait(Wait::Holders(left.to_vec(), Vec::new())));
    }
    assert_eq!(step(&[]), Step::Free { confirm: Vec::new() });
}

/// As if the time of a deletion said who goes first.
#[test]
fn the_time_of_a_deletion_is_no_input_of_a_decision() {
    for since in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
        for phase in Phase::ALL.map(Some).into_iter().chain([None]) {
            for references in [vec![reference("h", false)], vec![reference("c", true)], Vec::new()] {
                let step = |since| {
                    let object = Object {
                        since,
                        ..deleting(phase)
                    };
                    decide(&Input {
                        references: references.clone(),
                        targets: vec![seen("Target", "a")],
                        ..input(&object)
                    })
                };
                assert_eq!(step(Some(since)), step(None), "{since} {phase:?}");
            }
        }
    }
}
