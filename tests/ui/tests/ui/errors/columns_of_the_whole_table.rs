//! Columns of every row of a table are a scan like any other.
use kindex_generated::kinds::pipeline_run;

fn main() {
    let _ = pipeline_run::query().select((pipeline_run::NAME,));
}
