//! Stored objects as text: tables, documents, names. Pure.

use std::fmt::Write as _;

use jiff::Timestamp;
use kindex_runtime::kind::Kind;
use kindex_runtime::projection::extract;
use kindex_runtime::store::{Life, Stored};
use kindex_runtime::value::Value;
use serde_json::value::RawValue;

use crate::cli::Output;
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{age, table};

/// The first columns that fit a terminal; wide shows all of them.
const NARROW_COLUMNS: usize = 3;

/// One object.
pub(crate) fn object(kind: &Kind, row: &Stored, output: Output, now: Timestamp) -> CommandResult<String> {
    match output {
        Output::Json => Ok(row.object.text().to_owned() + "\n"),
        Output::Table | Output::Wide | Output::Yaml | Output::Name => {
            objects(kind, std::slice::from_ref(row), None, output, now)
        }
    }
}

/// A page of objects; as JSON it carries the token of the next page where kubectl's lists do.
pub(crate) fn objects(
    kind: &Kind,
    rows: &[Stored],
    continue_token: Option<&str>,
    output: Output,
    now: Timestamp,
) -> CommandResult<String> {
    match output {
        Output::Table => Ok(as_table(kind, rows, false, now)),
        Output::Wide => Ok(as_table(kind, rows, true, now)),
        Output::Name => Ok(rows
            .iter()
            .map(|row| format!("{}/{}\n", kind.singular, row.object.metadata.name))
            .collect()),
        Output::Json => as_list(rows, continue_token),
        Output::Yaml => as_yaml(rows),
    }
}

fn as_table(kind: &Kind, rows: &[Stored], wide: bool, now: Timestamp) -> String {
    let shown = if wide {
        kind.columns.len()
    } else {
        kind.columns.len().min(NARROW_COLUMNS)
    };
    let columns = &kind.columns[..shown];
    let mut heads = vec!["namespace", "name"];
    heads.extend(columns.iter().map(|column| column.name));
    heads.extend(["life", "version", "age"]);
    table(
        &heads,
        rows.iter().map(|row| {
            let metadata = &row.object.metadata;
            let mut cells = vec![metadata.namespace.clone(), metadata.name.clone()];
            cells.extend(extract(columns, &row.object, &mut Vec::new()).iter().map(cell));
            cells.push(life(row.life).to_owned());
            cells.push(metadata.resource_version.to_string());
            cells.push(age(metadata.creation_timestamp, now));
            cells
        }),
    )
}

fn life(life: Life) -> &'static str {
    match life {
        Life::Live => "live",
        Life::Evicted => "evicted",
        Life::Deleted => "deleted",
    }
}

/// A value as people read it.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "<none>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Time(time) => time.to_string(),
    }
}

fn as_list(rows: &[Stored], continue_token: Option<&str>) -> CommandResult<String> {
    let items: Vec<Box<RawValue>> = rows
        .iter()
        .map(|row| RawValue::from_string(row.object.text().to_owned()))
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error))?;
    let mut list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items});
    if let Some(token) = continue_token {
        list["metadata"] = serde_json::json!({"continue": token});
    }
    let mut text = serde_json::to_string_pretty(&list).map_err(|error| failed(&error))?;
    text.push('\n');
    Ok(text)
}

fn as_yaml(rows: &[Stored]) -> CommandResult<String> {
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let object: serde_json::Value = serde_json::from_str(row.object.text()).map_err(|error| failed(&error))?;
        let separator = if index == 0 { "" } else { "---\n" };
        let yaml = serde_saphyr::to_string(&object).map_err(|error| failed(&error))?;
        write!(text, "{separator}{yaml}").expect("a String takes all text");
    }
    Ok(text)
}

fn failed(error: &dyn std::error::Error) -> CommandError {
    CommandError::failure(chain(error))
}
