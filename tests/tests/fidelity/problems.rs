//! The three answers of reading: it fits, it fits with problems, it does not fit; and where.

use kindex_tests::types::trap::Mood;
use serde_json::json;

use super::fixture::read;

#[test]
fn an_unknown_enum_name_reads_as_zero_and_is_a_problem() {
    let decoded = read(json!({
        "mood": "MOOD_FROM_THE_FUTURE",
        "moods": ["MOOD_SAD", "MOOD_ODD"],
        "innerMap": { "k": { "others": [{}, { "mood": "MOOD_NEW" }] } },
    }));
    let spec = decoded.value.and_then(|root| root.spec).expect("fits");
    assert_eq!(spec.mood, 0);
    assert_eq!(spec.moods, [Mood::Sad as i32, 0]);
    let paths: Vec<&str> = decoded.problems.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["spec.innerMap.k.others[1].mood", "spec.mood", "spec.moods[1]"]);
    let message = &decoded.problems[1].message;
    assert!(
        message.contains("traps.v1.Mood") && message.contains("MOOD_FROM_THE_FUTURE"),
        "{message}"
    );
}

#[test]
fn an_unknown_enum_name_in_a_oneof_has_its_path() {
    let decoded = read(json!({ "chosenMood": "MOOD_ODD" }));
    assert_eq!(decoded.problems.len(), 1);
    assert_eq!(decoded.problems[0].path, "spec.chosenMood");
}

#[test]
fn a_value_that_does_not_fit_is_found_by_path() {
    for (json, path) in [
        (json!({ "word": 5 }), "spec.word"),
        (
            json!({ "inner": { "others": [{}, { "word": {} }] } }),
            "spec.inner.others[1].word",
        ),
        (json!({ "countMap": { "a.b": true } }), "spec.countMap.a.b"),
        (json!({ "at": "yesterday" }), "spec.at"),
        (json!([]), "spec"),
    ] {
        let decoded = read(json.clone());
        assert_eq!(decoded.value, None, "{json}");
        assert_eq!(decoded.problems.last().expect("a reason").path, path, "{json}");
    }
}

#[test]
fn text_that_is_no_json_does_not_fit() {
    use kindex_model::wire::{Root, decode};
    use kindex_tests::types::trap::{TrapSpec, TrapStatus};
    let decoded = decode::<Root<TrapSpec, TrapStatus>>("{\"spec\":");
    assert_eq!((decoded.value, decoded.problems.len()), (None, 1));
}

#[test]
fn reading_outside_of_decode_reports_nowhere() {
    let spec: kindex_tests::types::trap::TrapSpec =
        serde_json::from_value(json!({ "mood": "MOOD_ODD" })).expect("fits");
    assert_eq!(spec.mood, 0);
    assert_eq!(read(json!({})).problems, []);
}
