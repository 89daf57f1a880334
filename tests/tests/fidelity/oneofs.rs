//! Oneofs: flattened in JSON, and no error in them goes unnoticed.

use kindex_tests::types::trap::Mood;
use kindex_tests::types::trap::trap_spec::{Choice, SecondChoice};
use serde_json::json;

use super::fixture::{on_the_wire, read, spec, written};

#[test]
fn a_member_stands_in_its_message() {
    let json = json!({ "chosenInner": { "word": "a", "pickedInner": { "word": "b" } }, "secondWord": "c" });
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
    assert_eq!(spec(json).second_choice, Some(SecondChoice::SecondWord("c".to_owned())));
}

#[test]
fn every_codec_works_in_a_member() {
    let choices = [
        (json!({ "chosenWord": "a" }), Choice::ChosenWord("a".to_owned())),
        (json!({ "chosenCount": i64::MAX }), Choice::ChosenCount(i64::MAX)),
        (json!({ "chosenData": "aGk=" }), Choice::ChosenData(b"hi".to_vec())),
        (
            json!({ "chosenMood": "MOOD_SAD" }),
            Choice::ChosenMood(Mood::Sad as i32),
        ),
    ];
    for (json, choice) in choices {
        assert_eq!(spec(json.clone()).choice, Some(choice), "{json}");
        assert_eq!(written(json.clone()), json);
    }
    let text = json!({ "chosenCount": "7" });
    assert_eq!(spec(text).choice, Some(Choice::ChosenCount(7)));
}

#[test]
fn two_members_are_a_problem_and_the_first_declared_is_read() {
    for text in [
        r#"{"spec":{"chosenCount":1,"chosenWord":"a","flag":true}}"#,
        r#"{"spec":{"chosenWord":"a","flag":true,"chosenCount":1}}"#,
    ] {
        use kindex_model::wire::{Root, decode};
        use kindex_tests::types::trap::{TrapSpec, TrapStatus};
        let decoded = decode::<Root<TrapSpec, TrapStatus>>(text);
        let spec = decoded.value.and_then(|root| root.spec).expect("fits");
        assert_eq!(spec.choice, Some(Choice::ChosenWord("a".to_owned())), "{text}");
        assert!(spec.flag);
        assert_eq!(decoded.problems.len(), 1);
        assert_eq!(decoded.problems[0].path, "spec");
        let message = &decoded.problems[0].message;
        assert!(message.contains("chosenCount, chosenWord"), "{message}");
    }
}

#[test]
fn a_null_member_is_not_set() {
    let json = json!({ "chosenWord": null, "chosenCount": 1 });
    assert_eq!(spec(json).choice, Some(Choice::ChosenCount(1)));
}

#[test]
fn a_member_that_does_not_fit_is_a_problem_and_the_rest_is_read() {
    let decoded = read(json!({ "chosenInner": { "inner": { "word": 5 } }, "word": "a" }));
    let spec = decoded.value.and_then(|root| root.spec).expect("fits");
    assert_eq!((spec.choice, spec.word.as_str()), (None, "a"));
    assert_eq!(decoded.problems.len(), 1);
    assert_eq!(decoded.problems[0].path, "spec.chosenInner.inner.word");
}
