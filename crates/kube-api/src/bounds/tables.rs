//! Tables, by columns of any path over objects of any shape.

use super::{Budget, each_seed, object, size};
use crate::table::{IncludeObject, PrinterColumn, STEPS_MAX, render_counted};
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;
use serde_json::{Value, json};

const RUNS: u64 = 200;
const OBJECTS: usize = 3;
/// A row holds its cells and the object's metadata; while a path is followed, it leads to all values of an object.
const RENDERING: Budget = Budget {
    held: 60,
    allocated: 120,
};

/// Steps of paths.
const PARTS: &[&str] = &[
    ".spec",
    ".metadata",
    ".name",
    ".a",
    ".x",
    ".list",
    "[*]",
    ".*",
    "[0]",
    "[::2]",
    "[-1:]",
    "[?(@.name)]",
    "[?(@.name==1)]",
    "[?(@.a[?(@.b)])]",
    "[?(@.*==@.*)]",
    "['name']",
];

fn columns(random: &mut StdRng, bytes: usize) -> Vec<PrinterColumn> {
    let mut columns = Vec::new();
    let mut spent = 0;
    while spent < bytes && columns.len() < 1000 {
        let mut path = ".spec".to_owned();
        for _ in 0..random.random_range(0..6) {
            path.push_str(PARTS.choose(random).expect("some"));
        }
        if random.random_bool(0.1) {
            path.push_str(&".*".repeat(random.random_range(0..2000)));
        }
        spent += path.len();
        let kind = ["string", "integer", "date", "number", "boolean"]
            .choose(random)
            .expect("some");
        columns
            .push(PrinterColumn::deserialize(json!({"name": "x", "type": kind, "jsonPath": path})).expect("a column"));
    }
    columns
}

fn bytes_of(columns: &[PrinterColumn], objects: &[Value]) -> usize {
    let paths: usize = columns.iter().map(|column| 100 + column.json_path.len()).sum();
    paths + objects.iter().map(crate::size::text_bytes).sum::<usize>()
}

#[test]
fn no_generated_table_costs_more_than_its_columns_and_objects_are_worth() {
    each_seed(RUNS, |what, random| {
        let columns_bytes = size(random) / 4;
        let columns = columns(random, columns_bytes);
        let objects: Vec<Value> = (0..OBJECTS)
            .map(|_| {
                let bytes = size(random);
                object(random, bytes)
            })
            .collect();
        let bytes = bytes_of(&columns, &objects);
        let (table, steps) = RENDERING.check(what, bytes, || {
            render_counted(&columns, &objects, IncludeObject::Metadata, Timestamp::UNIX_EPOCH)
        });
        assert!(steps <= STEPS_MAX, "{what}: {steps} steps");
        assert_eq!(table["rows"].as_array().map(Vec::len), Some(OBJECTS), "{what}");
    });
}

#[test]
fn a_large_value_is_not_shown_once_for_each_column() {
    let column =
        |_| PrinterColumn::deserialize(json!({"name": "x", "type": "string", "jsonPath": ".spec"})).expect("a column");
    let columns: Vec<_> = (0..2000).map(column).collect();
    let object = object(&mut StdRng::seed_from_u64(1), 20_000);
    let objects = [object];
    let (table, _) = RENDERING.check("2,000 columns", bytes_of(&columns, &objects), || {
        render_counted(&columns, &objects, IncludeObject::None, Timestamp::UNIX_EPOCH)
    });
    let cells = table["rows"][0]["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2001, "a cell for each column");
    assert!(cells[1].is_string() && cells[2000].is_null());
}

#[test]
fn long_paths_over_long_lists_end_at_the_steps_of_a_table() {
    // For each of the items a path as long as a definition may have it.
    let long = ".a".repeat(2_000);
    let path = format!(".spec[?(@{long})]");
    let column =
        PrinterColumn::deserialize(json!({"name": "x", "type": "string", "jsonPath": path})).expect("a column");
    let deep = (0..100).fold(json!(1), |inner, _| json!({ "a": inner }));
    let object = json!({"metadata": {"name": "a"}, "spec": vec![deep; 200]});
    let short = PrinterColumn::deserialize(json!({"name": "x", "type": "string", "jsonPath": ".metadata.name"}));
    let short = short.expect("a column");
    let columns = [vec![short.clone()], vec![column; 2_000], vec![short]].concat();
    let (table, steps) = render_counted(&columns, &[object], IncludeObject::None, Timestamp::UNIX_EPOCH);
    assert_eq!(steps, STEPS_MAX, "all that a table may take");
    let cells = table["rows"][0]["cells"].as_array().expect("cells");
    let shown = [1, 2_002].map(|column| cells[column].as_str());
    assert_eq!(shown, [Some("a"), None], "nothing is left for the last column");
}
