//! A query is ordered by its own kind's columns.
use kindex_generated::kinds::{model, pipeline_run};

fn main() {
    let _ = pipeline_run::query().newest(3).order_by(model::ALGORITHM);
}
