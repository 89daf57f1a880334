//! Only the first column of a key narrows a query.
use kindex_generated::kinds::pipeline_run;
use kindex_runtime::query::Dialect;

fn main() {
    let _ = pipeline_run::query().pipeline_name().eq("train").to_sql(Dialect::MySql);
}
