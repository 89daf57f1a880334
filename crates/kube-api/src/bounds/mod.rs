//! What one request may cost: generated requests of each form, with a budget of memory and allocations that follows
//! from the size of the request and of the object. Seeds reproduce each of them.

mod apply;
mod patches;
mod selectors;
mod tables;

use allocation_counter::{AllocationInfo, measure};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

/// What may be spent on each byte that was sent or was there: values in memory take a multiple of their text.
#[derive(Clone, Copy)]
struct Budget {
    /// Bytes held at once.
    held: u64,
    /// Bytes allocated in all, also of what is gone again.
    allocated: u64,
}

/// What may be spent on nothing.
const FIXED_BYTES: u64 = 64 * 1024;

impl Budget {
    /// Runs something that was sent so many bytes, or found them.
    fn check<T>(self, what: &str, bytes: usize, run: impl FnOnce() -> T) -> T {
        let mut outcome = None;
        let AllocationInfo {
            bytes_max, bytes_total, ..
        } = measure(|| outcome = Some(run()));
        let most = |each: u64| FIXED_BYTES + each * bytes as u64;
        assert!(
            bytes_max <= most(self.held),
            "{what}: {bytes_max} bytes held for {bytes}"
        );
        assert!(
            bytes_total <= most(self.allocated),
            "{what}: {bytes_total} bytes allocated for {bytes}"
        );
        outcome.expect("it ran")
    }
}

/// Runs a test for each of so many seeds.
fn each_seed(seeds: u64, mut run: impl FnMut(&str, &mut StdRng)) {
    for seed in 0..seeds {
        run(&format!("seed {seed}"), &mut StdRng::seed_from_u64(seed));
    }
}

const NAMES: &[&str] = &[
    "a", "b", "name", "x", "list", "set", "steps", "tags", "$patch", "metadata", "",
];

/// A value of about so many bytes, of one of the shapes that cost more than they look.
fn value(random: &mut StdRng, bytes: usize, depth: usize) -> Value {
    if bytes < 8 || depth == 0 {
        return [json!(null), json!(0), json!("x"), json!({}), json!([]), json!(true)]
            .choose(random)
            .cloned()
            .unwrap_or_default();
    }
    let parts = 1 + random.random_range(0..4);
    match random.random_range(0..8) {
        0 => "x".repeat(bytes).into(),
        1 => vec![json!(0); bytes / 2].into(),
        2 => vec![json!({}); bytes / 3].into(),
        3 => (0..bytes / 8)
            .map(|at| (format!("{at}"), json!(0)))
            .collect::<Map<_, _>>()
            .into(),
        4 => (0..bytes / 12).map(|at| json!({ "name": at })).collect(),
        5 => (0..parts).map(|_| value(random, bytes / parts, depth - 1)).collect(),
        _ => {
            let fields = (0..parts).map(|_| {
                let name = (*NAMES.choose(random).expect("some")).to_owned();
                (name, value(random, bytes / parts, depth - 1))
            });
            fields.collect::<Map<_, _>>().into()
        }
    }
}

/// An object with such a value in it.
fn object(random: &mut StdRng, bytes: usize) -> Value {
    json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a", "namespace": "b"},
        "spec": value(random, bytes, 12)})
}

/// Sizes from nothing to 64 KiB: small requests against large objects, and the other way round.
fn size(random: &mut StdRng) -> usize {
    1 << random.random_range(0..17)
}
