//! Well-known types of protobuf and of Kubernetes.

use kindex_model::wire::{IntOrString, Root, decode};
use kindex_tests::types::trap::{TrapSpec, TrapStatus};
use serde_json::json;

use super::fixture::{on_the_wire, read, spec, written};

#[test]
fn timestamps_come_back_in_canonical_text() {
    for (text, canonical) in [
        ("2024-06-01T12:00:00Z", "2024-06-01T12:00:00Z"),
        ("2024-06-01T12:00:00.120000Z", "2024-06-01T12:00:00.120Z"),
        ("2024-06-01T14:00:00.000001+02:00", "2024-06-01T12:00:00.000001Z"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
    ] {
        assert_eq!(written(json!({ "at": text })), json!({ "at": canonical }));
        assert_eq!(on_the_wire(json!({ "at": text })), json!({ "at": canonical }));
    }
}

#[test]
fn a_time_before_1970_counts_nanoseconds_upwards() {
    let at = spec(json!({ "at": "1969-12-31T23:59:59.25Z" })).at.expect("present");
    assert_eq!((at.seconds, at.nanos), (-1, 250_000_000));
}

#[test]
fn what_is_no_rfc_3339_time_does_not_fit() {
    for text in [
        "-000001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-00:01",
        "2024-06-01T12:00:00",
        "2024-06-01 12:00:00Z",
        "2024-06-01",
        "2024-02-30T12:00:00Z",
        "2024-06-01T12:00:00+1:00",
        "2024-06-01T12:00:00+24:00",
        "ü",
        "",
    ] {
        assert_eq!(read(json!({ "at": text })).value, None, "{text}");
    }
}

#[test]
fn kubernetes_times_have_whole_seconds_or_microseconds() {
    let text = r#"{"status":{"seen":"2024-06-01T12:00:00.9Z","seenExactly":"2024-06-01T12:00:00Z"}}"#;
    let root = decode::<Root<TrapSpec, TrapStatus>>(text).value.expect("fits");
    let status = root.status.expect("present");
    assert_eq!(status.seen.expect("present").nanos, 900_000_000);
    assert_eq!(
        serde_json::to_value(status).expect("has a JSON form"),
        json!({ "seen": "2024-06-01T12:00:00Z", "seenExactly": "2024-06-01T12:00:00.000000Z" }),
    );
}

#[test]
fn durations_come_back_with_digits_in_threes() {
    for (text, canonical) in [
        ("1.5s", "1.500s"),
        ("-0.5s", "-0.500s"),
        ("0s", "0s"),
        (".000001s", "0.000001s"),
        ("-315576000000s", "-315576000000s"),
    ] {
        assert_eq!(written(json!({ "span": text })), json!({ "span": canonical }), "{text}");
        assert_eq!(
            on_the_wire(json!({ "span": text })),
            json!({ "span": canonical }),
            "{text}"
        );
    }
}

#[test]
fn the_fraction_of_a_negative_duration_is_negative() {
    let span = spec(json!({ "span": "-1.5s" })).span.expect("present");
    assert_eq!((span.seconds, span.nanos), (-1, -500_000_000));
}

#[test]
fn what_is_no_duration_does_not_fit() {
    for text in [
        "1.5",
        "s",
        "-s",
        "1.5.5s",
        "315576000001s",
        "1e3s",
        "--1s",
        "0.0000000001s",
    ] {
        assert_eq!(read(json!({ "span": text })).value, None, "{text}");
    }
}

#[test]
fn free_json_comes_back_as_it_was() {
    let json = json!({ "free": { "whole": 1, "decimal": 1.0, "big": 9_007_199_254_740_993_i64,
        "null": null, "list": [{}, []] }, "value": 1.0, "list": [1, "a"] });
    assert_eq!(written(json.clone()).to_string(), json.to_string());
}

#[test]
fn numbers_of_free_json_are_doubles_on_the_wire() {
    let json = json!({ "free": { "big": 9_007_199_254_740_993_i64 } });
    assert_eq!(on_the_wire(json), json!({ "free": { "big": 9_007_199_254_740_992.0 } }));
}

#[test]
fn an_any_with_base64_is_encoded() {
    let json = json!({ "any": { "@type": "x/y.Z", "value": "aGk=" } });
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
}

#[test]
fn an_any_with_fields_keeps_them_in_json_and_is_a_problem() {
    let json = json!({ "any": { "@type": "x/y.Z", "name": "a", "value": "b" } });
    let decoded = read(json.clone());
    assert_eq!(decoded.problems.len(), 1);
    assert_eq!(decoded.problems[0].path, "spec.any");
    let spec = decoded.value.and_then(|root| root.spec).expect("fits");
    assert_eq!(serde_json::to_value(&spec).expect("has a JSON form"), json);
    assert_eq!(spec.any.expect("present").value, b"");
}

#[test]
fn a_field_mask_is_one_text() {
    let json = json!({ "mask": "userName,spec.displayName" });
    assert_eq!(
        spec(json.clone()).mask.expect("present").paths,
        ["user_name", "spec.display_name"]
    );
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
}

#[test]
fn wrappers_are_bare_values() {
    let json = json!({ "wrappedFlag": true, "wrappedNumber": 7, "wrappedWord": "a",
        "wrappedRatio": 0.5, "wrappedNumbers": [0, 7] });
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
    assert_eq!(spec(json!({ "wrappedNumber": "7" })).wrapped_number, Some(7));
}

#[test]
fn int_or_string_is_either() {
    for json in [json!({ "port": 80 }), json!({ "port": "http" }), json!({ "port": 0 })] {
        assert_eq!(written(json.clone()), json);
        assert_eq!(on_the_wire(json.clone()), json);
    }
    let port = spec(json!({ "port": "80" })).port.expect("present");
    assert_eq!(port.r#type, IntOrString::TEXT);
}

#[test]
fn a_quantity_is_text_or_a_number() {
    assert_eq!(written(json!({ "amount": "500m" })), json!({ "amount": "500m" }));
    assert_eq!(written(json!({ "amount": 2 })), json!({ "amount": "2" }));
    assert_eq!(read(json!({ "amount": true })).value, None);
}

#[test]
fn fields_v1_is_json_whose_text_is_on_the_wire() {
    let json = json!({ "fields": { "f:metadata": { "f:labels": {} } } });
    assert_eq!(written(json.clone()), json);
    assert_eq!(on_the_wire(json.clone()), json);
}
