//! What needs no generated message. Everything else is tested against generated ones in the
//! integration tests, area `fidelity`.

use serde::Deserialize;
use serde_json::{Value as Json, json};

use prost::Message;

use super::report::collect;
use super::{Any, GoDuration, Struct, Value, decode, report};

#[test]
fn go_durations_come_back_as_go_writes_them() {
    for (text, canonical) in [
        ("1h30m", "1h30m0s"),
        ("90m", "1h30m0s"),
        ("1.5h", "1h30m0s"),
        ("300ms", "300ms"),
        ("1500us", "1.5ms"),
        ("1500µs", "1.5ms"),
        ("-1m0.5s", "-1m0.5s"),
        ("0", "0s"),
        ("7ns", "7ns"),
    ] {
        let duration: GoDuration = serde_json::from_value(json!(text)).expect(text);
        assert_eq!(serde_json::to_value(duration).expect("a text"), json!(canonical));
    }
}

#[test]
fn what_is_no_go_duration_does_not_fit() {
    for text in ["", "1", "h", "1d", "1h-5m", "9999999999h"] {
        let read: Result<GoDuration, _> = serde_json::from_value(json!(text));
        assert!(read.is_err(), "{text}");
    }
}

#[test]
fn free_json_survives_the_wire_but_for_the_sort_of_number() {
    let json = json!({ "a": [1, -2.5, "x", null, true, { "b": [] }], "empty": {}, "": 0 });
    let Json::Object(members) = json.clone() else {
        unreachable!("written as an object")
    };
    let message = Struct(members);
    let bytes = message.encode_to_vec();
    assert_eq!(bytes.len(), message.encoded_len());
    let back = Struct::decode(bytes.as_slice()).expect("our own bytes");
    assert_eq!(Json::Object(back.0), json);
    let null = Value::decode([].as_slice()).expect("no bytes are null");
    assert_eq!(null.0, Json::Null);
}

#[test]
fn a_free_value_nested_without_end_is_refused() {
    let mut json = json!(1);
    for _ in 0..200 {
        json = json!([json]);
    }
    let bytes = Value(json).encode_to_vec();
    assert!(Value::decode(bytes.as_slice()).is_err());
}

#[test]
fn an_any_is_its_type_and_its_bytes_on_the_wire() {
    let any: Any = serde_json::from_value(json!({ "@type": "x/y.Z", "value": "aGk=" })).expect("fits");
    assert_eq!(any.encode_to_vec(), b"\x0a\x05x/y.Z\x12\x02hi");
    assert_eq!(Any::decode(any.encode_to_vec().as_slice()).expect("our own bytes"), any);
}

#[test]
fn what_is_reported_in_between_belongs_to_the_inner_reading() {
    let ((), outer) = collect(|| {
        report("outer");
        let ((), inner) = collect(|| report("inner"));
        assert_eq!(inner.problems[0].message, "inner");
        report("outer again");
    });
    let messages: Vec<&str> = outer.problems.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(messages, ["outer", "outer again"]);
}

#[test]
fn the_path_of_an_error_is_that_of_the_innermost_value() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Outer {
        list: Vec<Inner>,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        number: u8,
    }
    let decoded = decode::<Outer>(r#"{"list":[{"number":1},{"number":"two"}]}"#);
    assert_eq!(decoded.value, None);
    assert_eq!(decoded.problems[0].path, "list[1].number");
}
