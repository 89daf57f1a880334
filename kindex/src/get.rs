//! `kindex get`: what SQL holds of a kind, live, evicted and deleted.

use std::fmt::Write as _;

use jiff::Timestamp;
use kindex_runtime::kind::{Kind, Registry};
use kindex_runtime::projection::extract;
use kindex_runtime::store::{AsOf, Life, ListQuery, MetadataStorage, Stored};
use kindex_runtime::value::Value;
use serde_json::value::RawValue;

use crate::cli::{GetArgs, Output};
use crate::error::{CommandError, CommandResult, chain};
use crate::moment::Time;
use crate::output::{age, table};
use crate::target::{Target, kind_and_name, with_history};

/// Reads the rows and prints them.
pub(crate) async fn run(registry: &Registry, args: &GetArgs, store: &dyn MetadataStorage) -> CommandResult {
    let (kind, name) = kind_and_name(registry, &args.kind, args.name.as_deref())?;
    if args.at.at.is_some() {
        with_history(registry, kind)?;
    }
    let rows = match name {
        Some(name) => {
            let namespace = args.namespace.as_deref().unwrap_or("default");
            vec![one(&Target::new(kind, namespace, name), args, store).await?]
        }
        None if args.at.at.is_some() => {
            return Err(
                CommandError::usage("--at shows one object").hint(format_args!("name it: {}/NAME", kind.singular))
            );
        }
        None => many(kind, args, store).await?,
    };
    print!(
        "{}",
        render(kind, &rows, args.output, name.is_some(), Timestamp::now())?
    );
    Ok(())
}

async fn one(target: &Target<'_>, args: &GetArgs, store: &dyn MetadataStorage) -> CommandResult<Stored> {
    let Target { kind, namespace, name } = *target;
    if let Some(Time(time)) = args.at.at {
        let found = store.version_at(kind, namespace, name, time).await;
        return stored_as_of(target, found.map_err(|error| failed(&error))?, time);
    }
    let found = if args.deleted {
        let rows = store.incarnations(kind, namespace, name).await;
        rows.map(|rows| rows.into_iter().next())
    } else {
        store.get_by_name(kind, namespace, name).await
    };
    found.map_err(|error| failed(&error))?.ok_or_else(|| {
        CommandError::failure(format_args!("{target}: not stored"))
            .hint("another namespace? name it with -n; a deleted object is shown with --deleted")
    })
}

/// What stood under the name then; the reason where nothing did.
pub(crate) fn stored_as_of(target: &Target<'_>, found: AsOf, time: Timestamp) -> CommandResult<Stored> {
    match found {
        AsOf::Stored(stored) => Ok(stored),
        AsOf::NotYet { first } => Err(
            CommandError::failure(format_args!("{target}: not stored yet at {time}"))
                .hint(format_args!("the first version that is kept was seen at {first}")),
        ),
        AsOf::Deleted { at, last } => {
            let version = last.object.metadata.resource_version;
            let deleted = CommandError::failure(format_args!("{target}: deleted at {at}, and not there at {time}"));
            Err(deleted.hint(format_args!(
                "its last version was {version}; ask for a time before its deletion"
            )))
        }
        AsOf::Unknown => {
            Err(CommandError::failure(format_args!("{target}: never stored"))
                .hint("another namespace? name it with -n"))
        }
    }
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

pub(crate) fn parse_label(label: &str) -> CommandResult<(String, String)> {
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
