//! Facts that two legs state separately, because they do not know each other.

use kindex_codegen::model::BaseColumn;

/// The derive refuses a column that every table has; the generator adds them.
#[test]
fn macros_and_codegen_know_the_same_base_columns() {
    let source = include_str!("../../../macros/src/valid.rs");
    let (_, list) = source
        .split_once("BASE_COLUMNS: [&str;")
        .expect("the list of base columns");
    let (list, _) = list.split_once("];").expect("the end of the list");
    let theirs: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    let ours: Vec<&str> = BaseColumn::all().map(BaseColumn::name).collect();
    assert_eq!(theirs, ours);
}
