//! A query follows its own kind's references.
use kindex_generated::kinds::{model, pipeline_run};

fn main() {
    let _ = pipeline_run::query().newest(3).with(model::reference::MODEL_FAMILY);
}
