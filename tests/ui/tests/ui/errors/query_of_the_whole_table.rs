//! Order and limit alone narrow nothing.
use kindex_generated::kinds::pipeline_run;
use kindex_query::Reader;

fn read(store: &impl Reader) {
    let _ = pipeline_run::query().live().limit(5).fetch_one(store);
}

fn main() {}
