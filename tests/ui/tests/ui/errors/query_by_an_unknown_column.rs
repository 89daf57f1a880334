//! A column that the kind does not have.
use kindex_generated::kinds::pipeline_run;

fn main() {
    let _ = pipeline_run::query().stat();
}
