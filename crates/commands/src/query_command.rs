//! `kindex query`: the named queries of crds.toml, listed and asked.

use std::collections::BTreeMap;

use kindex_model::kind::{ColumnType, NamedQuery, Operand, Registry};
use kindex_query::{Select, named_query};
use serde_json::{Value, json};

use crate::cli::{Form, Output, QueryArgs};
use crate::database::Store;
use crate::error::{CommandError, CommandResult};
use crate::output::{document, table};
use crate::{listing, say};

/// Lists the queries, or asks one.
pub async fn run(registry: &Registry, args: &QueryArgs, open: impl FnOnce() -> CommandResult<Store>) -> CommandResult {
    let Some(name) = &args.name else {
        say::print(listed(registry, args.answer.output)?)?;
        return Ok(());
    };
    let query = named_query(registry, name);
    let query = query.map_err(|error| CommandError::usage(error).hint("`kindex query` lists them"))?;
    let select = Select::named(query, &parameters(&args.parameters)?)
        .map_err(|error| CommandError::usage(error).hint(format_args!("as in: {}", example(query))))?;
    let store = open()?;
    let done = listing::answer(&registry.platform, select, &args.answer, store.as_ref()).await;
    store.close().await;
    done
}

fn parameters(given: &[String]) -> CommandResult<BTreeMap<String, String>> {
    let mut parameters = BTreeMap::new();
    for text in given {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            CommandError::usage(format_args!("parameter {text:?} has no `=`")).hint("write it as NAME=VALUE")
        })?;
        if parameters.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(CommandError::usage(format_args!("parameter {name} is given twice")));
        }
    }
    Ok(parameters)
}

fn listed(registry: &Registry, output: Output) -> CommandResult<String> {
    let queries = registry.queries.iter();
    match output {
        Output::Table | Output::Wide => {
            let rows = queries.map(|query| {
                let parameters: Vec<String> = typed_parameters(query)
                    .map(|(name, ty)| format!("{name}={}", type_name(ty).to_uppercase()))
                    .collect();
                let cells = [query.name, query.kind.name, &parameters.join(" "), query.doc];
                cells.map(str::to_owned).to_vec()
            });
            Ok(table(&["name", "kind", "parameters", "finds"], rows))
        }
        Output::Name => Ok(queries.map(|query| format!("{}\n", query.name)).collect()),
        Output::Json => document(&queries.map(|query| described(query)).collect::<Vec<_>>(), Form::Json),
        Output::Yaml => document(&queries.map(|query| described(query)).collect::<Vec<_>>(), Form::Yaml),
    }
}

fn described(query: &NamedQuery) -> Value {
    let parameters: Vec<Value> = typed_parameters(query)
        .map(|(name, ty)| json!({"name": name, "type": type_name(ty)}))
        .collect();
    json!({"name": query.name, "doc": query.doc, "kind": query.kind.name, "parameters": parameters})
}

/// The parameters in the order of their first use.
fn typed_parameters(query: &NamedQuery) -> impl Iterator<Item = (&'static str, ColumnType)> {
    query.parameters().into_iter().filter_map(|name| {
        let uses = |operand: Operand| operand == Operand::Parameter(name);
        let first = query.conditions.iter().find(|condition| uses(condition.operand))?;
        Some((name, first.ty))
    })
}

fn type_name(ty: ColumnType) -> &'static str {
    match ty {
        ColumnType::Text { .. } => "text",
        ColumnType::Int32 | ColumnType::Int64 | ColumnType::UInt64 => "integer",
        ColumnType::Bool => "boolean",
        ColumnType::Double => "number",
        ColumnType::Time => "time",
    }
}

fn example(query: &NamedQuery) -> String {
    let parameters = typed_parameters(query).map(|(name, ty)| format!(" -p {name}={}", type_name(ty).to_uppercase()));
    format!("kindex query {}{}", query.name, parameters.collect::<String>())
}
