//! Only the first column of a key narrows a query.
use kindex_generated::kinds::pipeline_run;
use kindex_query::Reader;

fn read(store: &impl Reader) {
    let _ = pipeline_run::query().pipeline_name().eq("train").fetch_one(store);
}

fn main() {}
