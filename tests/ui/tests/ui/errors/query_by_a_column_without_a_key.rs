//! A filter that no key serves would read the whole table.
use kindex_generated::kinds::pipeline_run;
use kindex_query::Reader;

fn read(store: &impl Reader) {
    let _ = pipeline_run::query().actor().eq("ada").fetch_one(store);
}

fn main() {}
