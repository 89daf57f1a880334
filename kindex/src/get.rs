//! `kindex get`: what SQL holds of a kind, live, evicted and deleted.

use std::fmt::Write as _;

use jiff::Timestamp;
use kindex_runtime::kind::{Kind, Registry};
use kindex_runtime::projection::extract;
use kindex_runtime::store::{Life, ListQuery, MetadataStorage, Stored};
use kindex_runtime::value::Value;
use serde_json::value::RawValue;

use crate::cli::{GetArgs, Output};
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{age, table};

/// Reads the rows and prints them.
pub(crate) async fn run(registry: &Registry, args: &GetArgs, store: &dyn MetadataStorage) -> CommandResult {
    let (kind, name) = target(registry, args)?;
    let rows = match &name {
        Some(name) => vec![one(kind, name, args, store).await?],
        None => many(kind, args, store).await?,
    };
    print!(
        "{}",
        render(kind, &rows, args.output, name.is_some(), Timestamp::now())?
    );
    Ok(())
}

fn target(registry: &Registry, args: &GetArgs) -> CommandResult<(&'static Kind, Option<String>)> {
    let (kind, name) = match args.kind.split_once('/') {
        Some((kind, name)) => (kind, Some(name.to_owned())),
        None => (args.kind.as_str(), args.name.clone()),
    };
    let found = registry.find(kind).ok_or_else(|| {
        let known: Vec<_> = registry.kinds.iter().map(|kind| kind.plural).collect();
        CommandError::usage(format_args!("unknown kind {kind:?}")).hint(format_args!("one of: {}", known.join(", ")))
    })?;
    Ok((found, name))
}

async fn one(kind: &Kind, name: &str, args: &GetArgs, store: &dyn MetadataStorage) -> CommandResult<Stored> {
    let namespace = args.namespace.as_deref().unwrap_or("default");
    let found = store
        .get_by_name(kind, namespace, name)
        .await
        .map_err(|error| failed(&error))?;
    found.ok_or_else(|| {
        CommandError::failure(format_args!("{} {namespace}/{name}: not stored", kind.name))
            .hint("another namespace? name it with -n; a deleted object is listed with --deleted")
    })
}

async fn many(kind: &Kind, args: &GetArgs, store: &dyn MetadataStorage) -> CommandResult<Vec<Stored>> {
    let labels = args
        .labels
        .iter()
        .map(|label| parse_label(label))
        .collect::<CommandResult<Vec<_>>>()?;
    let query = ListQuery {
        namespace: args.namespace.clone(),
        labels,
        include_deleted: args.deleted,
        limit: args.limit,
        after: None,
    };
    let mut rows = store.list(kind, &query).await.map_err(|error| failed(&error))?;
    rows.sort_by(|a, b| {
        let key = |row: &Stored| (row.object.metadata.namespace.clone(), row.object.metadata.name.clone());
        key(a).cmp(&key(b))
    });
    Ok(rows)
}

fn parse_label(label: &str) -> CommandResult<(String, String)> {
    let (key, value) = label
        .split_once('=')
        .ok_or_else(|| CommandError::usage(format_args!("label {label:?} has no `=`")).hint("write it as key=value"))?;
    Ok((key.to_owned(), value.to_owned()))
}

fn failed(error: &dyn std::error::Error) -> CommandError {
    CommandError::failure(chain(error)).hint("is this the right --database, and has `kindex up` run on it?")
}

fn render(kind: &Kind, rows: &[Stored], output: Output, single: bool, now: Timestamp) -> CommandResult<String> {
    match output {
        Output::Table => Ok(as_table(kind, rows, false, now)),
        Output::Wide => Ok(as_table(kind, rows, true, now)),
        Output::Name => Ok(rows
            .iter()
            .map(|row| format!("{}/{}\n", kind.singular, row.object.metadata.name))
            .collect()),
        Output::Json if single => Ok(rows.iter().map(|row| row.object.text().to_owned() + "\n").collect()),
        Output::Json => as_list(rows),
        Output::Yaml => as_yaml(rows),
    }
}

/// The first columns that fit a terminal; wide shows all of them.
const NARROW_COLUMNS: usize = 3;

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

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "<none>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Time(time) => time.to_string(),
    }
}

fn as_list(rows: &[Stored]) -> CommandResult<String> {
    let items: Vec<Box<RawValue>> = rows
        .iter()
        .map(|row| RawValue::from_string(row.object.text().to_owned()))
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error))?;
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items});
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
