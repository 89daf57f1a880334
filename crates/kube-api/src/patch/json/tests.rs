//! What a JSON patch may cost, whatever it says: of patches that were written to hurt, and of generated ones.

use json_patch::Patch;
use serde_json::{Value, json};

use super::*;

/// Runs of generated patches.
const RUNS: u64 = 60;

fn patch(steps: &Value) -> Patch {
    serde_json::from_value(steps.clone()).unwrap()
}

fn refusal(document: &Value, steps: &Value) -> String {
    apply(document, &patch(steps)).unwrap_err().to_string()
}

#[test]
fn copies_that_double_a_document_end_at_the_limit() {
    let double = json!({"op": "copy", "from": "/data", "path": "/data/x"});
    let steps: Vec<Value> = (0..30).map(|_| double.clone()).collect();
    let mut steps = Value::from(steps);
    for (at, step) in steps.as_array_mut().unwrap().iter_mut().enumerate() {
        step["path"] = format!("/data/x{at}").into();
    }
    let message = refusal(&json!({"data": {"a": "0123456789"}}), &steps);
    let size = message.strip_prefix("Unable to complete the copy, the accumulated size increase of copy is ");
    let size = size.and_then(|size| size.strip_suffix(", exceeding the limit 3145728"));
    let size: usize = size.and_then(|size| size.parse().ok()).expect(&message);
    // Each of its maps counts by what it takes in memory, which is more than the text.
    assert!((COPIED_BYTES_MAX..3 * COPIED_BYTES_MAX).contains(&size), "{size}");
}

#[test]
fn a_patch_has_at_most_ten_thousand_operations() {
    let step = json!({"op": "test", "path": "/a", "value": 1});
    let steps = |count: usize| Value::from(vec![step.clone(); count]);
    assert!(apply(&json!({"a": 1}), &patch(&steps(OPERATIONS_MAX))).is_ok());
    assert_eq!(
        refusal(&json!({"a": 1}), &steps(OPERATIONS_MAX + 1)),
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn a_patch_does_not_nest_values_deeper_than_they_can_be_read() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let deepest = DEPTH_MAX - 1;
    assert!(
        apply(
            &json!({"a": 1}),
            &patch(&json!([{"op": "add", "path": "/a", "value": nested(deepest)}]))
        )
        .is_ok()
    );
    let too_deep = [
        json!([{"op": "add", "path": "/a", "value": nested(deepest + 1)}]),
        json!([{"op": "replace", "path": "/b/0", "value": nested(deepest)}]),
        json!([{"op": "add", "path": "/b", "value": nested(100)}, {"op": "copy", "from": "/b", "path": format!("/b{}", "/0".repeat(50))}]),
        json!([{"op": "add", "path": "/c", "value": nested(100)}, {"op": "add", "path": "/d", "value": nested(90)},
            {"op": "move", "from": "/c", "path": format!("/d{}", "/0".repeat(60))}]),
    ];
    for steps in too_deep {
        let message = refusal(&json!({"a": 1, "b": [1]}), &steps);
        assert!(message.ends_with("nests values deeper than 127 levels"), "{message}");
    }
    // The limit is that of the reader.
    let text = |levels: usize| nested(levels).to_string();
    assert!(serde_json::from_str::<Value>(&text(DEPTH_MAX)).is_ok());
    assert!(serde_json::from_str::<Value>(&text(DEPTH_MAX + 1)).is_err());
}

#[test]
fn a_long_list_is_not_shifted_by_each_of_many_operations() {
    let document = json!({"list": vec![0; 500_000]});
    let steps = vec![json!({"op": "add", "path": "/list/0", "value": 0}); 2_000];
    let message = refusal(&document, &steps.into());
    assert_eq!(message, "operation '/536' exceeds the work that one patch may make");
    let appended = vec![json!({"op": "add", "path": "/list/-", "value": 0}); 2_000];
    let patched = apply(&document, &patch(&appended.into())).unwrap();
    assert_eq!(patched["list"].as_array().unwrap().len(), 502_000);
}

#[test]
fn the_operation_that_fails_is_named_by_its_index() {
    let steps = json!([{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/b"}]);
    assert_eq!(
        refusal(&json!({}), &steps),
        "operation '/1' failed at path '/b': path is invalid"
    );
}

/// A generator of its own: a seed is all that a failure needs.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn path(&mut self) -> String {
        let names = ["a", "b", "c", "list", "0", "-", "1"];
        (0..self.below(4))
            .map(|_| format!("/{}", names[self.below(names.len())]))
            .collect()
    }

    fn value(&mut self) -> Value {
        match self.below(5) {
            0 => json!({"a": {}, "list": []}),
            1 => json!([[], {}, "text"]),
            2 => "x".repeat(self.below(2000)).into(),
            3 => json!({"b": {"c": [1, 2, 3]}}),
            _ => self.below(100).into(),
        }
    }

    /// One operation; most are copies, and many of these double what is there.
    fn step(&mut self) -> Value {
        let (from, path) = (self.path(), self.path());
        match self.below(12) {
            0 => json!({"op": "add", "path": path, "value": self.value()}),
            1 => json!({"op": "remove", "path": path}),
            2 => json!({"op": "replace", "path": path, "value": self.value()}),
            3 => json!({"op": "move", "from": from, "path": path}),
            4..8 => json!({"op": "copy", "from": "/a", "path": format!("/a/x{}", self.below(1 << 20))}),
            _ => json!({"op": "copy", "from": from, "path": path}),
        }
    }
}

/// A patch of which each operation fits what those before it made.
fn fitting(random: &mut Random, document: &Value, count: usize) -> Patch {
    let (mut now, mut steps) = (document.clone(), Vec::new());
    for _ in 0..count {
        let step = patch(&json!([random.step()]));
        // What grows without bounds is left to the patch as a whole.
        if text_bytes(&now) > 1 << 16 {
            steps.extend(step.0);
        } else if let Ok(next) = apply(&now, &step) {
            now = next;
            steps.extend(step.0);
        }
    }
    Patch(steps)
}

#[test]
fn no_generated_patch_costs_more_than_the_limits() {
    let document = json!({"a": {"b": [1, 2, {"c": "x"}]}, "b": {}, "c": [], "list": [{"a": 1}, [], "y"]});
    let mut stopped = 0;
    for seed in 0..RUNS {
        let mut random = Random(seed);
        let count = 1 + random.below(60);
        let patch = fitting(&mut random, &document, count);
        let sent = text_bytes(&serde_json::to_value(&patch).unwrap());
        let Ok((patched, work)) = counted(&document, &patch) else {
            stopped += 1;
            continue;
        };
        let largest = text_bytes(&document) + sent + COPIED_BYTES_MAX;
        assert!(
            text_bytes(&patched) <= largest,
            "seed {seed}: {} bytes",
            text_bytes(&patched)
        );
        assert!(nests_within(&patched, DEPTH_MAX), "seed {seed}: too deep");
        assert!(
            work.copied_bytes <= COPIED_BYTES_MAX && work.steps <= STEPS_MAX,
            "seed {seed}: {work:?}"
        );
        let unbounded = json_patch::patch(&mut document.clone(), &patch);
        assert!(unbounded.is_ok(), "seed {seed}: {unbounded:?}");
    }
    assert!(
        (1..RUNS).contains(&stopped),
        "{stopped} of {RUNS} patches were stopped by a limit"
    );
}
