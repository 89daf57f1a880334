//! Server-side apply: of configurations with long lists and maps, to objects that many managers have had a hand in.

use super::{Budget, each_seed, object, size, value};
use crate::decode;
use crate::fields;
use crate::schema::Structural;
use crate::size::{OBJECT_BYTES_MAX, text_bytes};
use allocation_counter::measure;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use serde_json::{Map, Value, json};

const RUNS: u64 = 100;
/// Whose fields are whose takes a path for each of them, and sets of paths are made of sets of paths.
const APPLYING: Budget = Budget {
    held: 150,
    allocated: 500,
};

fn schema(random: &mut StdRng) -> Structural {
    let entries = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"name": {"type": "integer"}}, "required": ["name"]});
    let anything = json!({"x-kubernetes-preserve-unknown-fields": true});
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": entries});
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}});
    let spec = match random.random_range(0..4) {
        0 => map,
        1 => set,
        2 => json!({"type": "object", "properties": {"steps": map, "set": set, "tags": anything}}),
        _ => anything,
    };
    Structural::parse(&json!({"type": "object", "properties": {"spec": spec}})).expect("a schema")
}

/// Managers of a field each, as anybody may write them into an object.
fn managers(count: usize) -> Value {
    let one = |at: usize| {
        json!({"manager": format!("m{at}"), "operation": "Apply", "apiVersion": "g.io/v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {format!("f:{at}"): {}}}})
    };
    (0..count).map(one).collect()
}

#[test]
fn no_generated_configuration_costs_more_than_its_bytes_and_the_objects_are_worth() {
    let mut merged = 0;
    each_seed(RUNS, |what, random| {
        let schema = schema(random);
        let (live_bytes, sent_bytes) = (size(random), size(random));
        let mut live = object(random, live_bytes);
        if random.random_bool(0.7) {
            live["metadata"]["managedFields"] = managers(size(random) / 128);
        }
        let configuration = json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a"},
            "spec": value(random, sent_bytes, 12)});
        let (body, force) = (configuration.to_string(), random.next_u32() % 2 == 0);
        let bytes = body.len() + text_bytes(&live);
        let again = APPLYING.check(what, bytes, || apply(&schema, &live, &body, force));
        let Some(again) = again else { return };
        merged += 1;
        // What it made is what the next one meets.
        APPLYING.check(what, body.len() + text_bytes(&again), || {
            apply(&schema, &again, &body, force)
        });
    });
    assert!(merged > RUNS / 3, "{merged} of {RUNS} were merged");
}

fn apply(schema: &Structural, live: &Value, body: &str, force: bool) -> Option<Value> {
    let configuration = decode::yaml(body.as_bytes()).ok()?.value;
    let now = Timestamp::UNIX_EPOCH;
    fields::apply(
        Some(schema),
        Some(live),
        configuration,
        "me",
        force,
        None,
        "g.io/v1",
        now,
    )
    .ok()
}

#[test]
fn many_managers_cost_no_more_each_than_few() {
    let schema =
        Structural::parse(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).expect("a schema");
    for count in [10, 100, 1_000, 4_000] {
        let mut live = json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {}});
        for at in 0..count {
            live["spec"][at.to_string()] = 0.into();
        }
        live["metadata"]["managedFields"] = managers(count);
        // One that was there before leaves its field.
        let body = r#"{"apiVersion":"g.io/v1","kind":"A","metadata":{"name":"a"},"spec":{"more":1}}"#;
        let live = apply(&schema, &live, body, true).expect("applied");
        let bytes = body.len() + text_bytes(&live);
        let body = r#"{"apiVersion":"g.io/v1","kind":"A","metadata":{"name":"a"},"spec":{"other":1}}"#;
        let left = APPLYING.check(&format!("{count} managers"), bytes, || {
            apply(&schema, &live, body, true)
        });
        assert_eq!(left.expect("applied")["spec"].get("more"), None);
    }
}

/// Bodies of the shapes that cost most, and what each may hold for each of its bytes: as it is read, and in all. A map
/// of one field takes 640 bytes in any form, so shapes of many small maps cost what they cost to read, and as much
/// again to merge and to record their managers.
#[test]
fn large_configurations_hold_no_more_than_they_take_to_read_and_to_own() {
    const COUNT: usize = 20_000;
    let list_map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "integer"}}}});
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}});
    let anything = json!({"x-kubernetes-preserve-unknown-fields": true});
    let spec = json!({"type": "object", "properties": {"map": list_map, "set": set, "any": anything}});
    let schema = Structural::parse(&json!({"type": "object", "properties": {"spec": spec}})).expect("a schema");
    let map = |key: fn(usize) -> String, value: Value| -> Value {
        json!({"any": (0..COUNT).map(|at| (key(at), value.clone())).collect::<Map<_, _>>()})
    };
    let long = |at| format!("a-key-of-usual-length-{at:05}");
    let short = |at| format!("k{at:x}");
    let list = |field: &str, item: fn(usize) -> Value| json!({ field: (0..COUNT).map(item).collect::<Value>() });
    let meta = |spec| json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec});
    for (what, spec, most) in [
        ("long keys", map(long, json!("value")), 15),
        ("short keys", map(short, json!("v")), 30),
        ("a set", list("set", |at| at.into()), 60),
        ("a list of small maps", list("map", |at| json!({ "name": at })), 110),
        ("small maps", map(short, json!({"a": 0})), 110),
        ("one value of small maps", list("any", |_| json!({"a": 0})), 175),
        ("one value of numbers", list("any", |_| 0.into()), 60),
        ("a long text", json!({"any": "x".repeat(COUNT * 20)}), 5),
    ] {
        let body = meta(spec).to_string();
        let budget = Budget {
            held: most,
            allocated: 8 * most,
        };
        let live = meta(json!({}));
        let made = budget
            .check(what, body.len(), || apply(&schema, &live, &body, true))
            .expect("applied");
        let met = body.len() + text_bytes(&made);
        let less = meta(json!({"any": 0})).to_string();
        budget.check(&format!("{what}, again"), met, || apply(&schema, &made, &body, true));
        budget.check(&format!("{what}, left behind"), met, || {
            apply(&schema, &made, &less, true)
        });
    }
}

#[test]
fn a_configuration_of_more_paths_than_an_object_may_have_is_refused_before_it_is_merged() {
    let schema =
        Structural::parse(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).expect("a schema");
    let keys: Map<String, Value> = (0..250_000).map(|at| (format!("k{at:x}"), 0.into())).collect();
    let body = json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a"}, "spec": keys}).to_string();
    assert!(body.len() < OBJECT_BYTES_MAX);
    let live = json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a"}});
    let reading = Budget {
        held: 30,
        allocated: 60,
    };
    let refused = reading.check("refused", body.len(), || apply(&schema, &live, &body, true));
    assert_eq!(refused, None);
}

#[test]
fn an_update_of_more_paths_than_an_object_has_room_for_is_refused_before_they_are_gathered() {
    let meta = |spec: Value| json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec});
    let keys = |count: usize| -> Value {
        let keys = (0..count).map(|at| (format!("k{at:x}"), json!("v")));
        meta(keys.collect::<Map<_, _>>().into())
    };
    let update = |after| fields::update(None, None, after, "me", None, Timestamp::UNIX_EPOCH);
    let (fitting, mut before) = (keys(100_000), meta(json!({})));
    let owned = update(fitting).expect("room for all");
    assert!(text_bytes(&owned) <= OBJECT_BYTES_MAX);
    let after = keys(150_000);
    let bytes = text_bytes(&after);
    assert!(bytes < OBJECT_BYTES_MAX);
    let comparing = Budget {
        held: 65,
        allocated: 100,
    };
    let refused = comparing.check("created", bytes, || update(after));
    assert!(refused.is_err());
    // What others own and keep takes no room of the one who changes little.
    before["spec"] = owned["spec"].clone();
    before["metadata"] = owned["metadata"].clone();
    let mut after = before.clone();
    after["spec"]["k0"] = json!("w");
    let changed = fields::update(None, Some(&before), after, "you", None, Timestamp::UNIX_EPOCH);
    assert!(changed.is_ok());
}

#[test]
fn what_stays_as_it_is_costs_an_update_no_path_of_its_own() {
    const COUNT: usize = 10_000;
    let finalizers: Value = (0..COUNT).map(|at| format!("example.com/{at}")).collect();
    let fields: Map<String, Value> = (0..COUNT).map(|at| (format!("k{at}"), at.into())).collect();
    let schema =
        Structural::parse(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).expect("a schema");
    let mut before = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "finalizers": finalizers},
        "spec": fields, "status": {}});
    before["metadata"]["managedFields"] = managers(1);
    let mut after = before.clone();
    after["status"]["phase"] = "Done".into();
    let now = Timestamp::UNIX_EPOCH;
    let mut updated = None;
    let spent = measure(|| updated = Some(fields::update(Some(&schema), Some(&before), after, "me", None, now)));
    let updated = updated.expect("it ran").expect("room for its managers");
    assert_eq!(updated["metadata"]["managedFields"].as_array().map(Vec::len), Some(2));
    assert!(spent.count_total < COUNT as u64, "{} allocations", spent.count_total);
}
