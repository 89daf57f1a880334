//! An example of a kind's query, which the tests of the documentation compile.

use super::columns::{constant, method};
use crate::model::{Column, ColumnType, Kind};

/// The lines of the example, without marks.
pub(super) fn lines(kind: &Kind) -> Vec<String> {
    let module = &kind.module;
    let own = plain(kind).take(2).map(|column| constant(&column.name));
    let shown: Vec<String> = ["NAME", "UPDATE_TIME"]
        .into_iter()
        .map(str::to_owned)
        .chain(own)
        .map(|name| format!("{module}::{name}"))
        .collect();
    let mut lines = vec![
        format!("use kindex_generated::kinds::{module};"),
        "use kindex_query::Reader;".to_owned(),
        String::new(),
        "async fn newest<R: Reader>(store: &R) -> Result<(), R::Error> {".to_owned(),
        format!("    let query = {module}::query()"),
    ];
    lines.extend(filter(kind).map(|filter| format!("        {filter}")));
    lines.extend([
        "        .label(\"team\", \"fraud\")".to_owned(),
        "        .live()".to_owned(),
        format!("        .order_by({module}::UPDATE_TIME).desc()"),
        "        .limit(50);".to_owned(),
        format!("    let rows = query.select(({}));", shown.join(", ")),
        "    for row in rows.fetch(store).await?.items {".to_owned(),
        "        println!(\"{row:?}\");".to_owned(),
        "    }".to_owned(),
        "    Ok(())".to_owned(),
        "}".to_owned(),
    ]);
    lines
}

/// A condition that a key serves: on a column, else on a field with a namespace and a name.
fn filter(kind: &Kind) -> Option<String> {
    let is_keyed = |column: &&Column| kind.leads_a_key(&column.name);
    let keyed = plain(kind).find(|column| is_keyed(column) && is_text(column));
    let pair = || {
        let group = kind.columns.iter().find(is_keyed)?.group.as_ref()?;
        Some(format!(".{}(\"ml\", \"train\")", method(&group.name)))
    };
    match keyed {
        Some(column) if column.ty == ColumnType::Text => Some(format!(".{}().eq(\"…\")", method(&column.name))),
        Some(column) => Some(format!(".{}().by_name().eq(\"…\")", method(&column.name))),
        None => pair(),
    }
}

/// The columns that stand for a whole field.
fn plain(kind: &Kind) -> impl Iterator<Item = &Column> {
    let is_half = |column: &&Column| column.group.as_ref().is_some_and(|group| group.part.is_of_a_resource());
    kind.columns.iter().filter(move |column| !is_half(column))
}

fn is_text(column: &Column) -> bool {
    matches!(column.ty, ColumnType::Text | ColumnType::Enum(_))
}
