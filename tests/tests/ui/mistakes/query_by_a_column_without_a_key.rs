//! A filter that no key serves would read the whole table.
use kindex_generated::kinds::pipeline_run;
use kindex_runtime::query::Dialect;

fn main() {
    let _ = pipeline_run::query().actor().eq("ada").to_sql(Dialect::MySql);
}
