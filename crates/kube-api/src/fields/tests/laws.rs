//! What holds for any history of writes: apply is idempotent, force wins, managers of different fields do not meet.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{SCHEMA, apply_as, at, object, update};
use crate::fields::take_managed_fields;

fn texts() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "d"]).prop_map(str::to_owned)
}

/// A configuration; every part may be absent.
fn specs() -> impl Strategy<Value = Value> {
    let steps = prop::collection::btree_map(texts(), prop::option::of(texts()), 0..4);
    let tags = prop::collection::btree_map(texts(), texts(), 0..4);
    let set = prop::collection::btree_set(texts(), 0..4);
    let list = prop::collection::vec(texts(), 0..3);
    let parts = (
        prop::option::of(texts()),
        prop::option::of(0..3),
        prop::option::of(tags),
        prop::option::of(list),
        prop::option::of(set),
        prop::option::of(steps),
    );
    parts.prop_map(|(algorithm, size, tags, list, set, steps)| {
        let steps = steps.map(|steps| {
            let step = |(name, image): (String, Option<String>)| match image {
                Some(image) => json!({"name": name, "image": image}),
                None => json!({ "name": name }),
            };
            steps.into_iter().map(step).collect::<Vec<_>>()
        });
        let mut spec =
            json!({"algorithm": algorithm, "size": size, "tags": tags, "list": list, "set": set, "steps": steps});
        spec.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        spec
    })
}

/// A live object after some writes of some managers.
fn histories() -> impl Strategy<Value = Value> {
    prop::collection::vec(
        (any::<bool>(), prop::sample::select(vec!["a", "b", "c"]), specs()),
        1..5,
    )
    .prop_map(|writes| {
        let mut live = update(Some(&SCHEMA), None, object(json!({})), "creator", None, at(0));
        for (second, (applies, manager, spec)) in (1..).zip(writes) {
            live = if applies {
                apply_as(manager, Some(&live), spec, true, second).unwrap()
            } else {
                update(Some(&SCHEMA), Some(&live), object(spec), manager, None, at(second))
            };
        }
        live
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn applying_twice_changes_nothing(live in histories(), spec in specs()) {
        let once = apply_as("me", Some(&live), spec.clone(), true, 100).unwrap();
        let twice = apply_as("me", Some(&once), spec, false, 200).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn force_always_wins(live in histories(), spec in specs()) {
        let applied = apply_as("me", Some(&live), spec.clone(), true, 100).unwrap();
        for leaf in ["algorithm", "size", "list"] {
            if let Some(wanted) = spec.get(leaf) {
                prop_assert_eq!(&applied["spec"][leaf], wanted);
            }
        }
        for (key, wanted) in spec.get("tags").and_then(Value::as_object).into_iter().flatten() {
            prop_assert_eq!(&applied["spec"]["tags"][key], wanted);
        }
    }

    #[test]
    fn managers_of_different_fields_never_conflict(one in specs(), other in specs()) {
        let keep = |mut spec: Value, names: &[&str]| {
            spec.as_object_mut().unwrap().retain(|name, _| names.contains(&name.as_str()));
            spec
        };
        let live = apply_as("a", None, keep(one, &["algorithm", "tags", "set"]), false, 0).unwrap();
        prop_assert!(apply_as("b", Some(&live), keep(other, &["size", "list", "steps"]), false, 1).is_ok());
    }

    #[test]
    fn who_applies_nothing_leaves_nothing(live in histories(), spec in specs()) {
        let applied = apply_as("me", Some(&live), spec, true, 100).unwrap();
        let left = apply_as("me", Some(&applied), json!({}), false, 101).unwrap();
        let entries = left["metadata"]["managedFields"].as_array().unwrap();
        let mine = entries.iter().find(|entry| entry["manager"] == "me");
        let only_spec = json!({"f:spec": {}});
        prop_assert!(mine.is_none_or(|entry| entry["fieldsV1"] == only_spec));
    }

    #[test]
    fn an_update_never_changes_the_object_itself(live in histories(), spec in specs()) {
        let mut updated = update(Some(&SCHEMA), Some(&live), object(spec.clone()), "me", None, at(100));
        take_managed_fields(&mut updated);
        prop_assert_eq!(updated, object(spec));
    }
}
