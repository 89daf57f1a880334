//! Order and limit alone narrow nothing.
use kindex_generated::kinds::pipeline_run;
use kindex_runtime::query::Dialect;

fn main() {
    let _ = pipeline_run::query().live().limit(5).to_sql(Dialect::MySql);
}
