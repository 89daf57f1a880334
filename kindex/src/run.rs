//! From the command line to a command: telemetry, the async runtime, exit codes.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use kindex_runtime::kind::Registry;

use crate::cli::{Cli, Command, DataDirArg, DatabaseArg};
use crate::data_dir::DataDir;
use crate::error::{CommandError, CommandResult};
use crate::platform::Platform;
use crate::telemetry::Telemetry;
use crate::{
    against, api, backfill, database, diff, generate, get, history, ingester, lint, migrate, plan, purge, quarantine,
    query, release, restore, say, status, up, verify,
};

/// Runs the command that the process was started with.
pub fn run(platform: &Platform) -> ExitCode {
    let cli = Cli::parse();
    let done = Telemetry::start(&cli).and_then(|_until_the_end| dispatch(platform, cli));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::note(&error);
            error.exit_code()
        }
    }
}

fn dispatch(platform: &Platform, cli: Cli) -> CommandResult {
    let default = || Cli::try_parse_from(["kindex", "up"]).ok().and_then(|cli| cli.command);
    match cli.command.or_else(default).expect("`up` needs no flag") {
        Command::Generate(args) => generate::run(&args),
        Command::Plan(args) if args.against.is_some() => block_on(against::run(&platform.registry, &args)),
        Command::Plan(args) => plan::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kindex", &mut script);
            say::print(String::from_utf8_lossy(&script))
        }
        Command::Up(args) => block_on(up::run(platform, &args)),
        Command::Ingester(args) => block_on(ingester::run(&platform.registry, &args)),
        Command::Api(args) => block_on(api::run(&platform.registry, &args)),
        Command::Backfill(args) => block_on(backfill::run(&platform.registry, &args)),
        Command::Quarantine(args) => block_on(quarantine::run(&platform.registry, &args.command)),
        Command::Migrate(args) => block_on(migrate::run(&platform.registry, &args)),
        Command::Purge(args) => block_on(purge::run(&platform.registry, &args)),
        Command::Release(args) => block_on(release::run(&platform.registry, &args)),
        Command::Restore(args) => block_on(restore::run(&platform.registry, &args)),
        Command::Verify(args) => block_on(verify::run(&platform.registry, &args)),
        Command::Get(args) => block_on(async {
            let store = open(&platform.registry, &args.answer.data_dir, &args.answer.database)?;
            let done = get::run(&platform.registry, &args, store.as_ref()).await;
            store.close().await;
            done
        }),
        Command::Query(args) => block_on(query::run(&platform.registry, &args)),
        Command::History(args) => block_on(async {
            let store = open(&platform.registry, &args.object.data_dir, &args.object.database)?;
            let done = history::run(&platform.registry, &args, store.as_ref()).await;
            store.close().await;
            done
        }),
        Command::Diff(args) => block_on(async {
            let store = open(&platform.registry, &args.object.data_dir, &args.object.database)?;
            let done = diff::run(&platform.registry, &args, store.as_ref()).await;
            store.close().await;
            done
        }),
        Command::Status(args) => block_on(status::run(&platform.registry, &args)),
    }
}

fn open(registry: &Registry, data_dir: &DataDirArg, database: &DatabaseArg) -> CommandResult<database::Store> {
    let data_dir = DataDir::at(&data_dir.data_dir);
    database::open_existing(registry, database.database.as_deref(), &data_dir)
}

fn block_on(command: impl Future<Output = CommandResult>) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::failure(format_args!("cannot start: {error}")))?;
    runtime.block_on(command)
}
