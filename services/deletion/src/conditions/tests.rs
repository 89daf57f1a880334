//! Definitions with conditions in both forms and without, and what they say of a deletion.

use super::*;
use crate::notice::{About, MESSAGE_BYTES_MAX};

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// A definition whose status has this list.
fn definition(list: &str, fields: &Value) -> Value {
    json!({"spec": {"versions": [
        {"name": "v1beta1", "subresources": {"status": {}}},
        {
            "name": "v1",
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"properties": {"status": {"properties": {
                list: {"type": "array", "items": {"type": "object", "properties": fields}},
            }}}}},
        },
    ]}})
}

fn fields() -> Value {
    let text = json!({"type": "string"});
    json!({"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": {"type": "string"}})
}

fn kubernetes() -> Form {
    Form::of(&definition("conditions", &fields()), "v1").expect("it has conditions")
}

fn enums() -> Form {
    let mut fields = fields();
    let values = [
        "CONDITION_STATUS_UNKNOWN",
        "CONDITION_STATUS_TRUE",
        "CONDITION_STATUS_FALSE",
    ];
    fields["status"]["enum"] = json!(values);
    let fields = fields.as_object_mut().expect("fields");
    fields.remove("lastTransitionTime");
    fields.insert(
        "lastUpdatedTimestamp".to_owned(),
        json!({"x-kubernetes-int-or-string": true}),
    );
    let fields = Value::Object(fields.clone());
    Form::of(&definition("statusConditions", &fields), "v1").expect("it has conditions")
}

fn waits(message: &str) -> Notice {
    Notice {
        reason: "DeletionBlocked",
        message: message.to_owned(),
        roots: String::new(),
        about: About::Deletion,
    }
}

/// Of an object in a phase, at some second of a minute; in the first one since the minute began.
fn at(second: u32, phase: Phase, notice: Option<&Notice>) -> Deletion<'_> {
    Deletion {
        phase: Some(phase),
        since: (phase == Phase::Deleting).then(|| time("2026-01-01T00:00:00Z")),
        notice,
        now: time(&format!("2026-01-01T00:00:{second:02}Z")),
    }
}

#[test]
fn a_condition_names_the_phase_and_another_one_what_is_waited_for() {
    let notice = waits("still in use by c");
    let ready = json!({"type": "Ready", "status": "True"});
    let conditions = kubernetes().with(&json!({"conditions": [ready]}), at(30, Phase::Deleting, Some(&notice)));
    let expected = json!([
        ready,
        {
            "type": "DeletionPhase",
            "status": "True",
            "reason": "Deleting",
            "message": "DELETING since 2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
        {
            "type": "DeletionBlocked",
            "status": "True",
            "reason": "DeletionBlocked",
            "message": "still in use by c",
            "lastTransitionTime": "2026-01-01T00:00:30Z",
        },
    ]);
    assert_eq!(conditions.map(Value::from), Some(expected));
}

#[test]
fn a_kind_with_an_enum_and_numbers_has_its_own_form() {
    let (first, second) = (waits("by c and d"), waits("by d"));
    let form = enums();
    assert_eq!(form.list, "statusConditions");
    let before = form.with(&Value::Null, at(2, Phase::Draining, Some(&first)));
    let before = before.expect("they are new");
    for condition in &before {
        assert_eq!(condition["status"], "CONDITION_STATUS_TRUE");
        assert_eq!(
            condition["lastUpdatedTimestamp"],
            time("2026-01-01T00:00:02Z").as_millisecond()
        );
    }
    let after = form.with(
        &json!({"statusConditions": before}),
        at(9, Phase::Draining, Some(&second)),
    );
    let after = after.expect("the message is another one");
    assert_eq!(after[0], before[0]);
    assert_eq!(
        after[1]["lastUpdatedTimestamp"],
        time("2026-01-01T00:00:09Z").as_millisecond()
    );
}

#[test]
fn an_object_that_goes_on_has_conditions_only_if_it_waited_before() {
    let form = kubernetes();
    let others = json!({"conditions": [{"type": "Blocked", "status": "True"}, "no condition"]});
    assert_eq!(form.with(&others, at(0, Phase::Finalizing, None)), None);
    let notice = waits("by c");
    let said = |known: &Value, deletion| {
        let conditions = form.with(known, deletion).expect("something has changed");
        let last = &conditions[conditions.len() - 2..];
        let said = [&last[0]["reason"], &last[1]["status"], &last[1]["lastTransitionTime"]];
        let said = said.map(|text| text.as_str().expect("a text").to_owned());
        (json!({"conditions": conditions}), said)
    };
    let blocked_since = "2026-01-01T00:00:09Z";
    let (known, first) = said(&others, at(9, Phase::Deleting, Some(&notice)));
    assert_eq!(first, ["Deleting", "True", blocked_since]);
    let (known, second) = said(&known, at(20, Phase::Draining, None));
    assert_eq!(
        second,
        ["Draining", "True", blocked_since],
        "something is left, or it would not drain"
    );
    let (known, third) = said(&known, at(30, Phase::Finalizing, None));
    assert_eq!(third, ["Finalizing", "False", "2026-01-01T00:00:30Z"]);
    assert_eq!(
        form.with(&known, at(40, Phase::Finalizing, None)),
        None,
        "nothing has changed"
    );
    assert_eq!(known["conditions"][0], others["conditions"][0]);
}

#[test]
fn what_is_refused_is_said_once_and_taken_back_once() {
    let form = kubernetes();
    let refused = |message: &str| Notice {
        reason: "ReferenceRefused",
        about: About::Refusal,
        ..waits(message)
    };
    let at = |second: i8| time(&format!("2026-01-01T00:00:{second:02}Z"));
    let ready = json!({"type": "Ready", "status": "True"});
    let others = json!({"conditions": [ready]});
    assert_eq!(form.with_refusal(&others, None, at(1)), None, "nothing was refused");
    let said = |known: &Value, notice: Option<&Notice>, second| {
        let conditions = form
            .with_refusal(known, notice, at(second))
            .expect("something has changed");
        assert_eq!(conditions[0], ready);
        assert_eq!(conditions.len(), 2);
        json!({"conditions": conditions})
    };
    let (first, second) = (refused("network names n"), refused("network names m"));
    let known = said(&others, Some(&first), 2);
    let expected = json!({"type": "ReferenceRefused", "status": "True", "reason": "ReferenceRefused",
        "message": "network names n", "lastTransitionTime": "2026-01-01T00:00:02Z"});
    assert_eq!(known["conditions"][1], expected);
    assert_eq!(
        form.with_refusal(&known, Some(&first), at(3)),
        None,
        "it says so already"
    );
    let known = said(&known, Some(&second), 4);
    assert_eq!(known["conditions"][1]["message"], "network names m");
    let known = said(&known, None, 5);
    assert_eq!(known["conditions"][1]["status"], "False");
    assert_eq!(known["conditions"][1]["lastTransitionTime"], "2026-01-01T00:00:05Z");
    assert_eq!(form.with_refusal(&known, None, at(6)), None, "it says so already");
}

#[test]
fn texts_are_as_long_as_those_of_events() {
    let notice = waits(&"x".repeat(100_000));
    let conditions = kubernetes().with(&Value::Null, at(0, Phase::Deleting, Some(&notice)));
    let conditions = conditions.expect("they are new");
    assert_eq!(conditions[1]["message"].as_str().map(str::len), Some(MESSAGE_BYTES_MAX));
}

#[test]
fn kinds_whose_conditions_are_none_of_these_have_no_form() {
    let with = |pointer: &str, value: Value| {
        let mut definition = definition("conditions", &fields());
        let items = definition.pointer_mut("/spec/versions/1/schema/openAPIV3Schema/properties/status/properties");
        let items = items
            .and_then(|status| status.pointer_mut("/conditions/items"))
            .expect("items");
        match pointer {
            "" => items["required"] = value,
            field => items["properties"][field] = value,
        }
        Form::of(&definition, "v1")
    };
    assert_eq!(with("status", json!({"type": "boolean"})), None);
    assert_eq!(with("type", json!({"type": "string", "enum": ["Ready"]})), None);
    assert_eq!(with("status", json!({"type": "string", "enum": ["Good", "Bad"]})), None);
    assert_eq!(with("", json!(["type", "severity"])), None);
    assert_eq!(
        with("", json!(["type", "status", "lastTransitionTime"])),
        Some(kubernetes())
    );
    assert_eq!(Form::of(&definition("phases", &fields()), "v1"), None, "another list");
    assert_eq!(
        Form::of(&definition("conditions", &fields()), "v1beta1"),
        None,
        "another version"
    );
    let mut unwritable = definition("conditions", &fields());
    unwritable["spec"]["versions"][1]["subresources"] = Value::Null;
    assert_eq!(Form::of(&unwritable, "v1"), None, "no subresource");
}
