//! Only texts have prefixes.
use kindex_generated::kinds::pipeline_run;

fn main() {
    let _ = pipeline_run::query().end_time().starts_with("2026");
}
