//! Every kind in several versions, the shipped ones and those of the tests: an object of any version is the same after
//! its way through any two others and back.

use std::collections::BTreeSet;

use kindex_convert::convert;
use kindex_model::kind::{Kind, MapRule, Platform};
use proptest::prelude::*;
use serde_json::{Value, json};

type Path = &'static [&'static str];

/// A field of a version, and whether a function converts it, which takes numbers alone.
type Field = (Path, bool);

fn kinds() -> Vec<(Platform, &'static Kind)> {
    let shipped = kindex_generated::registry::KINDS.iter();
    let shipped = shipped.map(|kind| (kindex_generated::registry::PLATFORM, *kind));
    let tests = kindex_tests::registry::KINDS.iter();
    let tests = tests.map(|kind| (kindex_tests::registry::PLATFORM, *kind));
    shipped
        .chain(tests)
        .filter(|(_, kind)| !kind.versions.is_empty())
        .collect()
}

/// The fields of a version that differ in another one, and some that every version has.
fn fields(kind: &Kind, version: &str) -> BTreeSet<Field> {
    const COMMON: [Field; 2] = [(&["spec", "common"], false), (&["status", "phase"], false)];
    let mapped = kind.versions.iter().flat_map(|other| {
        let maps = other.map.iter();
        maps.filter_map(move |map| {
            let by_function = matches!(map.rule, MapRule::Function { .. });
            let path = match (version == kind.version, version == other.name) {
                (true, _) => map.own,
                (_, true) => map.here,
                (false, false) => None,
            };
            Some((path?, by_function))
        })
    });
    mapped.chain(COMMON).collect()
}

/// Sets a field, unless a field above it has a value of its own.
fn put(object: &mut Value, path: Path, value: Value) {
    let [above @ .., name] = path else { return };
    let mut place = object;
    for step in above {
        let Some(fields) = place.as_object_mut() else { return };
        place = fields.entry(*step).or_insert_with(|| json!({}));
    }
    if let Some(fields) = place.as_object_mut() {
        fields.entry(*name).or_insert(value);
    }
}

fn object(kind: &Kind, version: &str, picks: &[u8]) -> Value {
    let mut object = json!({"apiVersion": format!("{}/{version}", kind.group), "kind": kind.name,
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "labels": {"l": "1"}}});
    for ((path, by_function), pick) in fields(kind, version).into_iter().zip(picks.iter().cycle()) {
        let value = match pick % 6 {
            0 => continue,
            1 => json!(i64::from(*pick) * 1_801),
            _ if by_function => json!(i64::from(*pick)),
            2 => json!("text"),
            3 => json!(null),
            4 => json!(0.5),
            _ => json!(["first", {"second": 2}]),
        };
        put(&mut object, path, value);
    }
    object
}

#[test]
fn there_are_kinds_in_several_versions() {
    assert!(kinds().iter().any(|(_, kind)| kind.versions.len() > 1));
}

proptest! {
    #[test]
    fn every_kind_comes_back_from_all_of_its_versions(picks in proptest::collection::vec(any::<u8>(), 24)) {
        for (platform, kind) in kinds() {
            let to = |version: &str, text: &str| convert(&platform, kind, text, version).expect("it converts");
            let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            for from in kind.version_names() {
                let object = object(kind, from, &picks);
                let text = object.to_string();
                prop_assert_eq!(to(from, &text), text.clone());
                for through in kind.version_names() {
                    let there = to(through, &text);
                    let back = to(from, &there);
                    prop_assert_eq!(value(&back), object.clone(), "{} to {}: {}", from, through, there);
                    prop_assert_eq!(to(through, &back), there.clone(), "{} to {} again", from, through);
                    for further in kind.version_names() {
                        let back = to(from, &to(further, &there));
                        prop_assert_eq!(value(&back), object.clone(), "{} to {} to {}", from, through, further);
                    }
                }
            }
        }
    }
}
