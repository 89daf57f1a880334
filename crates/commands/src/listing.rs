//! Runs a query that a person asked: shows a page, the number of rows, or how the database reads
//! it. A query that reads everything says so on stderr, and what would change that.

use std::fmt::Write as _;
use std::io::IsTerminal;

use jiff::Timestamp;
use kindex_model::kind::{Kind, Platform};
use kindex_query::{Page, Reach, Select, Stored};
use kindex_store::{MetadataStorage, Plan, StoreError};

use crate::cli::{AnswerArgs, Output};
use crate::database::unanswered;
use crate::enums;
use crate::error::{CommandError, CommandResult};
use crate::output::table;
use crate::own_version;
use crate::say;
use crate::show::{cell, objects};

/// Answers a query as the flags want it.
pub(crate) async fn answer(
    platform: &Platform,
    mut select: Select,
    args: &AnswerArgs,
    store: &dyn MetadataStorage,
) -> CommandResult {
    let reach = select.reach();
    match reach {
        Reach::Key(_) | Reach::Label => {}
        Reach::InOrder | Reach::Scan(_) | Reach::Alternatives | Reach::Sort(_) => select.allow_scan(),
    }
    if let Some(note) = note(&select, reach) {
        say::note(note);
    }
    for note in enums::notes(&select) {
        say::note(note);
    }
    if args.count {
        let rows = store.count_selected(&select).await.map_err(|error| failed(&error))?;
        say::line(rows)?;
        return Ok(());
    }
    if let Some(rows) = args.limit {
        select.limit(rows);
    }
    let token = args.continue_token.as_deref();
    if args.explain {
        let plan = store.explain(&select, token).await.map_err(|error| failed(&error))?;
        say::print(explained(&plan))?;
        return Ok(());
    }
    let page = store.select(&select, token).await.map_err(|error| failed(&error))?;
    print(platform, select.kind(), page, args.output)
}

/// Prints a page, and how to go on after it.
pub(crate) fn print(platform: &Platform, kind: &Kind, page: Page, output: Output) -> CommandResult {
    let next = page.continue_token.as_deref();
    if page.items.is_empty() && next.is_none() {
        match output {
            Output::Json => {}
            Output::Table | Output::Wide | Output::Yaml | Output::Name => {
                say::note(format_args!("No {} found.", kind.plural));
                return Ok(());
            }
        }
    }
    let rows: Vec<Stored> = page
        .items
        .into_iter()
        .map(|row| own_version::row(platform, kind, row))
        .collect();
    let text = objects(kind, &rows, next, output, Timestamp::now())?;
    say::print(&text)?;
    if let Some(token) = next {
        match output {
            Output::Json if !std::io::stderr().is_terminal() => {}
            Output::Table | Output::Wide | Output::Yaml | Output::Name | Output::Json => {
                say::note(format_args!("more rows: --continue {token}"));
            }
        }
    }
    Ok(())
}

/// What a person should know of a query that no key serves.
fn note(select: &Select, reach: Reach) -> Option<String> {
    let kind = select.kind().name;
    let own = |column: &str| select.kind().columns.iter().any(|known| known.name == column);
    let key = |column: &str| {
        if own(column) {
            format!("`key = true` on column {column} of [kinds.{kind}] in crds.toml makes it fast")
        } else {
            "add a condition on a column with a key, or on a label's value".to_owned()
        }
    };
    match reach {
        Reach::Key(_) | Reach::Label | Reach::InOrder => None,
        Reach::Scan("labels") => Some(format!(
            "note: this reads all rows of {kind}: labels have a key for `a=b` and `a in (…)` alone\n  hint: {}",
            key("labels")
        )),
        Reach::Scan(column) => Some(format!(
            "note: this reads all rows of {kind}: no key starts with {column}\n  hint: {}",
            key(column)
        )),
        Reach::Alternatives => Some(format!(
            "note: this reads all rows of {kind}: no one key serves each side of the `or`\n  \
             hint: ask for each side by itself"
        )),
        Reach::Sort(column) => Some(format!(
            "note: this sorts all rows of {kind}: no key starts with {column}\n  hint: {}",
            key(column)
        )),
    }
}

fn explained(plan: &Plan) -> String {
    let mut text = format!("{}\n", plan.statement.sql);
    for (number, value) in plan.statement.values.iter().enumerate() {
        writeln!(text, "  ?{} = {}", number + 1, cell(value)).expect("a String takes all text");
    }
    text.push('\n');
    let none = || "<none>".to_owned();
    let rows = plan.steps.iter().map(|step| {
        vec![
            step.table.clone().unwrap_or_else(none),
            step.key.clone().unwrap_or_else(none),
            step.text.clone(),
        ]
    });
    text + &table(&["table", "key", "step"], rows)
}

/// What a person is told who asked for something that cannot be, or that failed.
pub(crate) fn failed(error: &StoreError) -> CommandError {
    match error {
        StoreError::Continue(_) => CommandError::usage(error)
            .hint("a token goes on with the kind, conditions and order that it came with; leave it out to begin again"),
        StoreError::Template(_) => CommandError::usage(error).hint("`kindex query` lists the queries"),
        StoreError::Retryable { .. }
        | StoreError::Refused { .. }
        | StoreError::Schema(_)
        | StoreError::Corrupt { .. }
        | StoreError::Address(_)
        | StoreError::NoHistory(_)
        | StoreError::Direct { .. }
        | StoreError::UnlimitedDelete(_) => unanswered(error),
    }
}
