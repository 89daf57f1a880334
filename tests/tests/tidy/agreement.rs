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

/// A column that is called like a method of every query gets another method from the generator, which therefore has
/// to know all of them.
#[test]
fn the_generator_knows_the_methods_that_every_query_has() {
    let macros = include_str!("../../../crates/query/src/declare.rs");
    let (_, common) = macros
        .split_once("macro_rules! query_common")
        .expect("what all query types have");
    let mut methods: Vec<&str> = common
        .split("pub fn ")
        .skip(1)
        .filter_map(|text| text.split(['(', '<']).next())
        .filter(|name| !name.starts_with('$'))
        .collect();
    let columns = common.split("@column").skip(1).filter_map(|text| {
        let (declared, _) = text.split_once('}')?;
        declared.lines().map(str::trim).rfind(|line| !line.is_empty())
    });
    methods.extend(columns.filter(|name| !name.starts_with('$')));
    // Of `kindex_store::ToSql`, which a column's method of that name would hide.
    methods.push("to_sql");
    methods.sort_unstable();

    let source = include_str!("../../../codegen/src/emit/query/columns.rs");
    let (_, list) = source.split_once("TAKEN: [&str;").expect("the list of methods");
    let (list, _) = list.split_once("];").expect("the end of the list");
    let known: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert_eq!(methods, known);
}
