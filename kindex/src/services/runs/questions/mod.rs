//! `kindex runs list` and its neighbors: what a running service is asked, and the check of its file.

mod flags;

mod ask;

mod show;

use std::io::{self, IsTerminal as _};

use axum::http::Method;
use jiff::Timestamp;
use kindex_commands::error::{CommandError, CommandResult, chain};
use kindex_commands::form::Form;
use kindex_commands::output::document;
use kindex_commands::say;
use kindex_runs::artifacts::{self, Files};
use kindex_runs::service::Folder;
use kindex_runs::store;
use serde_json::{Value, json};

use ask::{Address, ask};
use flags::{ChangeArgs, GetArgs, ListArgs, MetricsArgs, VerifyArgs};

pub(crate) use flags::Question;

/// Asks, and prints the answer.
pub(super) async fn run(question: &Question) -> CommandResult {
    match question {
        Question::List(args) => list(args).await,
        Question::Get(args) => get(args).await,
        Question::Metrics(args) => metrics(args).await,
        Question::Kill(args) => kill(args).await,
        Question::Delete(args) => delete(args).await,
        Question::Verify(args) => check(args).await,
    }
}

async fn list(args: &ListArgs) -> CommandResult {
    let mut address = Address::new(&["runs"]).with("limit", &args.limit.to_string());
    for (name, value) in [
        ("project", args.project.clone().unwrap_or_default()),
        ("status", args.status.join(",")),
        ("tags", args.tags.join(",")),
        ("q", args.name.clone().unwrap_or_default()),
        ("page_token", args.continue_token.clone().unwrap_or_default()),
    ] {
        if !value.is_empty() {
            address = address.with(name, &value);
        }
    }
    let answer = ask(&args.server, Method::GET, &address, None).await?;
    let with_project = args.project.is_none();
    print(&answer, args.output, |answer| {
        show::runs(answer, with_project, Timestamp::now())
    })?;
    if let Some(token) = answer["next_page_token"].as_str().filter(|token| !token.is_empty()) {
        let total = &answer["total"];
        say::note(format_args!("note: {total} runs in all; go on with --continue {token}"));
    }
    Ok(())
}

async fn get(args: &GetArgs) -> CommandResult {
    let answer = ask(&args.server, Method::GET, &Address::new(&["runs", &args.run]), None).await?;
    print(&answer, args.output, show::run)
}

async fn metrics(args: &MetricsArgs) -> CommandResult {
    let address = Address::new(&["runs", &args.run, "metrics"]);
    let mut address = address.with("max_points", &args.max_points.to_string());
    if !args.names.is_empty() {
        address = address.with("names", &args.names.join(","));
    }
    for (name, step) in [("start_step", args.from), ("end_step", args.to)] {
        if let Some(step) = step {
            address = address.with(name, &step.to_string());
        }
    }
    let answer = ask(&args.server, Method::GET, &address, None).await?;
    let missing = show::missing(&args.names, &answer);
    if !missing.is_empty() && missing.len() == args.names.len() {
        return Err(
            CommandError::failure(format_args!("run {} has no metric {}", args.run, missing.join(", ")))
                .hint(format_args!("it has: {}", show::available(&answer))),
        );
    }
    print(&answer, args.output, show::curves)?;
    for name in missing {
        say::note(format_args!(
            "note: run {} has no points of {name} in this range",
            args.run
        ));
    }
    Ok(())
}

async fn kill(args: &ChangeArgs) -> CommandResult {
    confirm(args.yes, &format!("This ends run {} as killed.", args.run))?;
    let body = json!({"status": "killed"});
    ask(
        &args.server,
        Method::POST,
        &Address::new(&["runs", &args.run, "finish"]),
        Some(body),
    )
    .await?;
    say::line(format_args!("run {} is killed", args.run))
}

async fn delete(args: &ChangeArgs) -> CommandResult {
    let question = format!(
        "This deletes run {} with its points, parameters, tags and artifacts.",
        args.run
    );
    confirm(args.yes, &question)?;
    ask(&args.server, Method::DELETE, &Address::new(&["runs", &args.run]), None).await?;
    say::line(format_args!("run {} is deleted", args.run))
}

/// Asks at a terminal; elsewhere nobody can answer, and --yes has to be said.
fn confirm(is_confirmed: bool, question: &str) -> CommandResult {
    if is_confirmed {
        return Ok(());
    }
    let refused = |why: &str| Err(CommandError::usage(why).hint("confirm with --yes"));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return refused(&format!("{question} stdin is not a terminal, so nobody can confirm"));
    }
    say::prompt(format_args!("{question} Go on? [y/N] "));
    let mut answer = String::new();
    match io::stdin().read_line(&mut answer) {
        Ok(_) if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) => Ok(()),
        Ok(_) | Err(_) => refused("nothing was changed"),
    }
}

async fn check(args: &VerifyArgs) -> CommandResult {
    let failed = |error: &dyn std::error::Error| {
        CommandError::failure(chain(error)).hint("--data-dir names the directory of the runs service")
    };
    let readers = store::readers(&args.data_dir).await.map_err(|error| failed(&error))?;
    let mut report = store::verify::verify(&readers).await.map_err(|error| failed(&error))?;
    let folder = Folder::at(&args.data_dir);
    let files = Files::at(&folder.artifacts());
    report.findings.extend(
        artifacts::check(&readers, &files)
            .await
            .map_err(|error| failed(&error))?,
    );
    readers.close().await;
    let counted = [
        ("runs", report.runs),
        ("batches", report.batches),
        ("chunks", report.chunks),
        ("points", report.points),
    ];
    let mut answer: Value = counted
        .iter()
        .map(|(name, count)| ((*name).to_owned(), json!(count)))
        .collect();
    answer["findings"] = json!(report.findings);
    print(&answer, args.output, show::report)?;
    match report.findings.len() {
        0 => Ok(()),
        1 => Err(CommandError::failure("1 thing does not agree")),
        count => Err(CommandError::failure(format_args!("{count} things do not agree"))),
    }
}

fn print(answer: &Value, form: Form, table: impl FnOnce(&Value) -> String) -> CommandResult {
    match form {
        Form::Table => say::print(table(answer)),
        Form::Json | Form::Yaml => say::print(document(answer, form)?),
    }
}
