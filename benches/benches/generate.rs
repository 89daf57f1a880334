//! How long the generator takes for 10, 100 and 1,000 kinds of 20 columns, from the
//! text of crds.toml to the text of every output. Nothing is written to disk.
//!
//! `cargo bench -p kindex-benches --bench generate`

use std::fmt::Write as _;
use std::time::{Duration, Instant};

const COLUMNS: usize = 20;
const RUNS: usize = 5;

fn main() {
    println!("{:>6}  {:>10}  {:>12}  {:>9}", "kinds", "median", "per kind", "output");
    for kinds in [10, 100, 1000] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("crds.toml"), declaration(kinds)).expect("writable");
        let mut times = Vec::with_capacity(RUNS);
        let mut bytes = 0;
        for _ in 0..RUNS {
            let begin = Instant::now();
            let generated = kindex_codegen::generate(directory.path()).expect("the declaration is right");
            let artifacts = generated.artifacts;
            times.push(begin.elapsed());
            bytes = artifacts.values().map(String::len).sum();
        }
        times.sort();
        let median: Duration = times[RUNS / 2];
        let per_kind = median / u32::try_from(kinds).expect("few kinds");
        println!(
            "{kinds:>6}  {median:>10.1?}  {per_kind:>12.1?}  {:>7.1}MB",
            bytes as f64 / 1e6
        );
    }
}

fn declaration(kinds: usize) -> String {
    let mut text = String::from(
        "[platform]\ngroup = \"bench.kindex\"\nversion = \"v1\"\nfinalizer = \"bench/Ingester\"\n\
         deleting = \"bench/Deleting\"\nimmutable = \"bench/Immutable\"\n",
    );
    for kind in 0..kinds {
        let fields: Vec<_> = (0..COLUMNS)
            .map(|column| format!("field{column} = \"{}\"", ty(column)))
            .collect();
        let fields = fields.join(", ");
        write!(text, "\n[kinds.Kind{kind}]\ndoc = \"One of many.\"\nfields = {{ spec = {{ {fields} }}, status = {{ phase = \"string\" }} }}\n[kinds.Kind{kind}.columns]\n")
            .expect("a String takes all text");
        for column in 0..COLUMNS {
            writeln!(
                text,
                "field{column} = {{ path = \"spec.field{column}\", key = {} }}",
                column < 2
            )
            .expect("a String takes all text");
        }
    }
    text
}

fn ty(column: usize) -> &'static str {
    ["string", "int64", "bool", "double", "int32"][column % 5]
}
