//! From the command line to a command: telemetry, the async runtime, exit codes.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use kindex_commands::error::{CommandError, CommandResult};
use kindex_commands::platform::Platform;
use kindex_commands::{
    against, backfill, diff, events, generate, get, graph, history, lint, migrate, move_command, plan, purge,
    quarantine, query_command, references, release, restore, say, sides, status, verify, versions, why,
};
use kindex_model::spelling::nearest;

use crate::cli::{Cli, Command};
use crate::telemetry::Telemetry;
use crate::{completions, up};

/// Runs the command that the process was started with.
pub fn run(platform: &Platform) -> ExitCode {
    let cli = parse();
    let done = Telemetry::start(&cli).and_then(|_until_the_end| dispatch(platform, cli));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::note(&error);
            error.exit_code()
        }
    }
}

/// What was typed; where it is wrong, the process ends with the reason.
fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|mut error| {
        suggest(&mut error);
        error.exit()
    })
}

/// Names the command that was meant where clap finds none, as for two letters that changed places.
fn suggest(error: &mut clap::Error) {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) if error.get(ContextKind::SuggestedSubcommand).is_none() => typed.clone(),
        _ => return,
    };
    let command = Cli::command();
    if let Some(meant) = nearest(&typed, command.get_subcommands().map(clap::Command::get_name)) {
        let meant = ContextValue::Strings(vec![meant.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, meant);
    }
}

fn dispatch(platform: &Platform, cli: Cli) -> CommandResult {
    let default = || Cli::try_parse_from(["kindex", "up"]).ok().and_then(|cli| cli.command);
    match cli.command.or_else(default).expect("`up` needs no flag") {
        Command::Generate(args) => generate::run(&args),
        Command::Plan(args) if args.against.is_some() => block_on(against::run(&platform.registry, &args)),
        Command::Plan(args) => plan::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Why(args) => block_on(why::run(&platform.registry, &args)),
        Command::Move(args) => block_on(move_command::run(&platform.registry, &args)),
        Command::References(args) => block_on(references::run(platform, &args.command)),
        Command::Events(args) => block_on(events::run(&platform.registry, &args)),
        Command::Completions { shell } => completions::run(&platform.registry, shell),
        Command::Up(args) => block_on(up::run(platform, &args)),
        Command::Service(service) => block_on(service.run(platform)),
        Command::Backfill(args) => block_on(backfill::run(&platform.registry, &args)),
        Command::Quarantine(args) => block_on(quarantine::run(&platform.registry, &args.command)),
        Command::Migrate(args) => block_on(migrate::run(&platform.registry, &args)),
        Command::Purge(args) => block_on(purge::run(platform, &args)),
        Command::Release(args) => block_on(release::run(&platform.registry, &args)),
        Command::Restore(args) => block_on(restore::run(&platform.registry, &args)),
        Command::Versions(args) => block_on(versions::run(&platform.registry, &args)),
        Command::Verify(args) => block_on(verify::run(&platform.registry, &args)),
        Command::Get(args) => block_on(async {
            let store = sides::store(&platform.registry, &args.answer.store)?;
            let done = get::run(&platform.registry, &args, store.as_ref()).await;
            store.close().await;
            done
        }),
        Command::Query(args) => {
            let open = || sides::store(&platform.registry, &args.answer.store);
            block_on(query_command::run(&platform.registry, &args, open))
        }
        Command::History(args) => block_on(async {
            let store = sides::store(&platform.registry, &args.object.store)?;
            let done = history::run(&platform.registry, &args, store.as_ref()).await;
            store.close().await;
            done
        }),
        Command::Diff(args) => block_on(async {
            let store = sides::store(&platform.registry, &args.object.store)?;
            let done = diff::run(&platform.registry, &args, store.as_ref()).await;
            store.close().await;
            done
        }),
        Command::Status(args) => block_on(status::run(&platform.registry, &args)),
    }
}

fn block_on(command: impl Future<Output = CommandResult>) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::failure(format_args!("cannot start: {error}")))?;
    runtime.block_on(command)
}
