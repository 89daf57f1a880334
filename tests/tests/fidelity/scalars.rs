//! Names, numbers, enums and bytes.

use kindex_tests::types::trap::Mood;
use serde_json::json;

use super::fixture::{on_the_wire, read, spec, written};

#[test]
fn json_names_are_those_of_the_descriptor() {
    let json = json!({ "sizeGB": 3, "explicitName": "a", "type": "b", "wordMap": { "k": "v" } });
    assert_eq!(spec(json.clone()).size_gb, 3);
    assert_eq!(written(json.clone()), json);
}

#[test]
fn int64_is_read_from_number_and_string_and_written_as_number() {
    for text in ["7", "\"7\"", "7.0"] {
        let json = serde_json::from_str(&format!("{{\"count\": {text}, \"huge\": {text}}}"));
        let json: serde_json::Value = json.expect("JSON");
        assert_eq!(written(json), json!({ "count": 7, "huge": 7 }), "{text}");
    }
}

#[test]
fn int64_above_2_pow_53_keeps_its_digits() {
    let json = json!({ "count": i64::MIN, "huge": u64::MAX, "wrappedNumber": i64::MAX });
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
}

#[test]
fn a_number_out_of_range_does_not_fit() {
    for json in [
        json!({ "small": 3_000_000_000_u32 }),
        json!({ "positive": -1 }),
        json!({ "count": 1.5 }),
        json!({ "count": "seven" }),
        json!({ "count": "9223372036854775808" }),
    ] {
        assert_eq!(read(json.clone()).value, None, "{json}");
    }
}

#[test]
fn floats_that_json_cannot_say_are_words() {
    let json = json!({ "ratio": "NaN", "ratios": ["Infinity", "-Infinity", 0.5] });
    assert_eq!(written(json.clone()), json);
}

#[test]
fn enums_are_names_in_every_shape() {
    let json = json!({
        "mood": "MOOD_HAPPY",
        "maybeMood": "MOOD_INVALID",
        "moods": ["MOOD_SAD", "MOOD_INVALID"],
        "moodMap": { "k": "MOOD_SAD" },
        "moodByNumber": { "-7": "MOOD_HAPPY" },
        "chosenMood": "MOOD_SAD",
        "size": "SIZE_LARGE",
        "inner": { "size": "SIZE_LARGE", "mood": "MOOD_SAD", "pickedSize": "SIZE_LARGE" },
    });
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
    assert_eq!(spec(json).maybe_mood, Some(Mood::Invalid as i32));
}

#[test]
fn an_enum_is_read_by_number_too() {
    assert_eq!(written(json!({ "mood": 2 })), json!({ "mood": "MOOD_SAD" }));
}

#[test]
fn an_unknown_enum_number_is_kept() {
    let json = json!({ "mood": 77, "moods": [1, 77] });
    assert_eq!(written(json), json!({ "mood": 77, "moods": ["MOOD_HAPPY", 77] }));
}

#[test]
fn bytes_are_base64_in_every_shape() {
    let json = json!({
        "data": "AP/+",
        "maybeData": "",
        "datas": ["", "aGk="],
        "dataMap": { "k": "aGk=" },
        "wrappedData": "aGk=",
        "chosenData": "aGk=",
    });
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
}

#[test]
fn base64_is_read_in_both_alphabets_with_or_without_padding() {
    for text in ["-_8=", "-_8", "+/8=", "+/8"] {
        assert_eq!(spec(json!({ "data": text })).data, [0xfb, 0xff], "{text}");
    }
    assert_eq!(read(json!({ "data": "not base64!" })).value, None);
}

#[test]
fn map_keys_of_any_type_are_strings_in_json() {
    let json = json!({
        "byNumber": { "-7": "a", "12": "b" },
        "byFlag": { "true": { "word": "yes" } },
        "inner": { "word": "beside a oneof" },
    });
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
    assert_eq!(read(json!({ "byNumber": { "seven": "a" } })).value, None);
}
