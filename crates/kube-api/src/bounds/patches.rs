//! Merge patches and strategic merge patches.

use super::{Budget, each_seed, object, size, value};
use crate::fields;
use crate::patch::{Patch, PatchType};
use crate::size::text_bytes;
use jiff::Timestamp;
use rand::RngExt;
use serde_json::{Value, json};

const RUNS: u64 = 200;
/// A value takes some 30 times the bytes of the shortest text, and is there a few times: before, after, as sent.
const PATCHING: Budget = Budget {
    held: 100,
    allocated: 110,
};
/// Whose fields are whose takes a path for each of them.
const OWNING: Budget = Budget {
    held: 150,
    allocated: 200,
};

#[test]
fn no_generated_merge_patch_costs_more_than_its_bytes_and_the_objects_are_worth() {
    let mut applied = 0;
    each_seed(RUNS, |what, random| {
        let (live_bytes, patch_bytes) = (size(random), size(random));
        let live = fields::update(
            None,
            None,
            object(random, live_bytes),
            "creator",
            None,
            Timestamp::UNIX_EPOCH,
        );
        let live = live.expect("room for its managers");
        let patch_type = if random.random_bool(0.5) {
            PatchType::Merge
        } else {
            PatchType::Strategic
        };
        let mut patch = json!({ "spec": value(random, patch_bytes, 12) });
        if patch_type == PatchType::Strategic {
            add_directives(&mut patch, random.random_range(0..6));
        }
        let body = patch.to_string();
        let bytes = body.len() + text_bytes(&live);
        let what = format!("{what}, {patch_type:?}");
        let patched = PATCHING.check(&what, bytes, || {
            let (patch, _) = Patch::read(patch_type, body.as_bytes()).ok()?;
            patch.apply(&live).ok()
        });
        let Some(patched) = patched else { return };
        applied += 1;
        assert!(
            text_bytes(&patched) <= bytes + 2,
            "{what}: more than was sent and was there"
        );
        let owned = OWNING.check(&what, bytes, || {
            fields::update(None, Some(&live), patched, "me", None, Timestamp::UNIX_EPOCH)
        });
        assert!(owned.is_ok(), "{what}: room for its managers");
    });
    assert!(applied > RUNS / 2, "{applied} of {RUNS} were applied");
}

fn add_directives(patch: &mut Value, number: usize) {
    let long: Vec<Value> = (0..1000).map(Value::from).collect();
    let (name, directive) = [
        ("$patch", json!("replace")),
        ("$retainKeys", long.clone().into()),
        ("$deleteFromPrimitiveList/finalizers", long.clone().into()),
        ("$setElementOrder/finalizers", long.clone().into()),
        ("finalizers", long.into()),
        (
            "conditions",
            (0..1000).map(|at| json!({"type": at, "$patch": "delete"})).collect(),
        ),
    ][number]
        .clone();
    patch["metadata"] = json!({ name: directive });
}
