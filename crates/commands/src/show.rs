//! Stored objects as text: tables, documents, names. Pure.

use std::fmt::Write as _;
use std::iter;

use jiff::Timestamp;
use kindex_api::columns::printer_columns;
use kindex_kube_api::table::{self, IncludeObject};
use kindex_model::kind::Kind;
use kindex_model::projection::extract;
use kindex_model::value::Value;
use kindex_query::{Life, Stored};
use serde_json::value::RawValue;

use crate::cli::Output;
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{age, table};

/// The path of the age, which a table has anyway.
const CREATION_TIMESTAMP: &str = ".metadata.creationTimestamp";

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
        Output::Table => as_table(kind, rows, now),
        Output::Wide => Ok(as_wide_table(kind, rows, now)),
        Output::Name => Ok(rows
            .iter()
            .map(|row| format!("{}/{}\n", kind.singular, row.object.metadata.name))
            .collect()),
        Output::Json => as_list(rows, continue_token),
        Output::Yaml => as_yaml(rows),
    }
}

/// What `kubectl get` shows of the objects, with where they live.
fn as_table(kind: &Kind, rows: &[Stored], now: Timestamp) -> CommandResult<String> {
    let mut columns = printer_columns(kind, kind.version);
    columns.retain(|column| column.priority == 0 && column.json_path != CREATION_TIMESTAMP);
    let objects: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| serde_json::from_str(row.object.text()))
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error))?;
    let rendered = table::rows(&columns, &objects, IncludeObject::None, now);
    let headings = columns.iter().map(|column| column.name.as_str());
    let heads: Vec<&str> = iter::once("namespace")
        .chain(["name"])
        .chain(headings)
        .chain(["life", "age"])
        .collect();
    let rows = rows.iter().zip(&rendered).map(|(row, rendered)| {
        let metadata = &row.object.metadata;
        let shown = rendered["cells"].as_array().into_iter().flatten();
        let mut cells = vec![metadata.namespace.clone()];
        cells.extend(shown.map(printed));
        cells.extend([life(row).to_owned(), age(metadata.creation_timestamp, now)]);
        cells
    });
    Ok(table(&heads, rows))
}

fn printed(cell: &serde_json::Value) -> String {
    match cell {
        serde_json::Value::Null => "<none>".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Every extracted column, by its name in SQL.
fn as_wide_table(kind: &Kind, rows: &[Stored], now: Timestamp) -> String {
    let names = kind.columns.iter().map(|column| column.name);
    let heads: Vec<&str> = iter::once("namespace")
        .chain(["name"])
        .chain(names)
        .chain(["life", "version", "age"])
        .collect();
    let rows = rows.iter().map(|row| {
        let metadata = &row.object.metadata;
        let mut cells = vec![metadata.namespace.clone(), metadata.name.clone()];
        cells.extend(extract(kind.columns, &row.object, &mut Vec::new()).iter().map(cell));
        let version = metadata.resource_version.to_string();
        cells.extend([life(row).to_owned(), version, age(metadata.creation_timestamp, now)]);
        cells
    });
    table(&heads, rows)
}

/// Where an object lives, in one word.
pub(crate) fn life(row: &Stored) -> &'static str {
    match row.life {
        Life::Live => "live",
        Life::Archived => "archived",
        Life::Deleted if row.replaced_by.is_some() => "replaced",
        Life::Deleted => "deleted",
    }
}

/// A value as people read it.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "<none>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
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

#[cfg(test)]
mod tests {
    use kindex_generated::kinds::pipeline_run;
    use kindex_model::object::Object;

    use super::*;

    #[test]
    fn a_table_has_the_printer_columns_and_a_wide_one_all_columns() {
        let text = r#"{"apiVersion":"michelangelo.api/v2","kind":"PipelineRun","metadata":{"uid":"u","namespace":"n",
            "name":"nightly","resourceVersion":"7","creationTimestamp":"1970-01-01T00:00:00Z"},
            "spec":{"pipeline":{"name":"train"},"actor":{"name":"ada"}},
            "status":{"state":"PIPELINE_RUN_STATE_FAILED","endTime":"1970-01-01T00:10:00Z"}}"#;
        let row = Stored {
            object: Object::parse_str(text).expect("an object"),
            life: Life::Live,
            delete_time: None,
            evicted_time: None,
            update_time: None,
            replaced_by: None,
        };
        let now = Timestamp::from_second(3_600).expect("in range");
        let shown = |output| objects(&pipeline_run::KIND, std::slice::from_ref(&row), None, output, now);
        assert_eq!(
            shown(Output::Table).expect("a table"),
            "NAMESPACE   NAME      PIPELINE   STATE                       ENDED   LIFE   AGE\n\
             n           nightly   train      PIPELINE_RUN_STATE_FAILED   50m     live   60m\n"
        );
        let wide = shown(Output::Wide).expect("a table");
        for word in [
            "PIPELINE_NAMESPACE",
            "ACTOR",
            "VERSION",
            "ada",
            "1970-01-01T00:10:00Z",
            "7",
        ] {
            assert!(wide.contains(word), "{word} in {wide}");
        }
    }

    #[test]
    fn an_object_whose_name_was_taken_was_replaced_and_not_deleted() {
        let text = r#"{"apiVersion":"michelangelo.api/v2","kind":"PipelineRun","metadata":{"uid":"u","namespace":"n",
            "name":"nightly","resourceVersion":"7"}}"#;
        let mut row = Stored {
            object: Object::parse_str(text).expect("an object"),
            life: Life::Deleted,
            delete_time: None,
            evicted_time: None,
            update_time: None,
            replaced_by: None,
        };
        assert_eq!(life(&row), "deleted");
        row.replaced_by = Some("v".into());
        assert_eq!(life(&row), "replaced");
    }
}
