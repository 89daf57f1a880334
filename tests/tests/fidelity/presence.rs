//! Zeros, nulls, absence, and what no message knows.

use serde_json::json;

use super::fixture::{on_the_wire, read, spec, written};

#[test]
fn an_empty_spec_stays_empty() {
    assert_eq!(written(json!({})), json!({}));
}

#[test]
fn explicit_zeros_of_plain_fields_are_dropped() {
    let zeros = json!({ "word": "", "flag": false, "small": 0, "ratio": 0.0, "data": "",
        "mood": "MOOD_INVALID", "words": [], "wordMap": {} });
    assert_eq!(written(zeros), json!({}));
}

#[test]
fn explicit_zeros_of_optional_fields_are_kept() {
    let zeros = json!({ "maybeWord": "", "maybeFlag": false, "maybeCount": 0, "maybeRatio": 0.0,
        "maybeData": "", "maybeMood": "MOOD_INVALID", "wrappedFlag": false, "wrappedNumber": 0,
        "wrappedWord": "", "chosenCount": 0, "secondFlag": false });
    assert_eq!(written(zeros.clone()), zeros);
    assert_eq!(on_the_wire(zeros.clone()), zeros);
}

#[test]
fn an_empty_message_is_present() {
    let json = json!({ "inner": {}, "empty": {}, "free": {}, "list": [] });
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
}

#[test]
fn null_is_absence_in_every_field() {
    let message = super::oracle::TRAPS.get_message_by_name("traps.v1.TrapSpec");
    for field in message.expect("the fixture's message").fields() {
        if field.json_name() != "value" {
            let json = json!({ field.json_name(): null });
            assert_eq!(written(json), json!({}), "{}", field.json_name());
        }
    }
}

#[test]
fn null_is_a_value_of_a_free_value() {
    let json = json!({ "value": null, "values": [null, 1], "valueMap": { "k": null } });
    assert_eq!(written(json.clone()), json);
    assert_eq!(
        on_the_wire(json.clone()),
        json!({ "value": null, "values": [null, 1.0], "valueMap": { "k": null } })
    );
}

#[test]
fn unknown_fields_are_passed_over() {
    let json = json!({ "word": "a", "unknown": { "deep": [1] }, "inner": { "other": 1e300 } });
    assert_eq!(written(json), json!({ "word": "a", "inner": {} }));
}

#[test]
fn a_member_that_occurs_twice_does_not_fit() {
    use kindex_model::wire::{Root, decode};
    use kindex_tests::types::trap::{TrapSpec, TrapStatus};
    let decoded = decode::<Root<TrapSpec, TrapStatus>>(r#"{"spec":{"word":"a","word":"b"}}"#);
    assert_eq!(decoded.value, None);
    assert_eq!(decoded.problems.len(), 1);
}

#[test]
fn a_missing_spec_is_no_problem() {
    use kindex_model::wire::{Root, decode};
    use kindex_tests::types::trap::{TrapSpec, TrapStatus};
    let decoded = decode::<Root<TrapSpec, TrapStatus>>(r#"{"metadata":{"name":"a"}}"#);
    assert_eq!(decoded.problems, []);
    assert_eq!(decoded.value.expect("fits").spec, None);
}

#[test]
fn an_object_within_an_object_shows_its_kind() {
    let json = json!({ "other": { "kind": "Trap", "apiVersion": "traps.dev/v1",
        "metadata": { "name": "inner" }, "spec": { "word": "a" } } });
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
    assert_eq!(read(json).problems, []);
    assert_eq!(spec(json!({ "other": {} })).other.expect("present").type_meta, None);
}
