//! A column is compared with a value of its own type.
use kindex_generated::kinds::pipeline_run;

fn main() {
    let _ = pipeline_run::query().state().eq("FAILED");
    let _ = pipeline_run::query().actor().eq(7);
}
