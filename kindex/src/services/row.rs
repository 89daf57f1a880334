//! A service as the table has it, whatever its type: how its command and its part of `kindex up` run.

use clap::{ArgMatches, Args as _, FromArgMatches as _};
use futures::FutureExt as _;
use futures::future::{self, LocalBoxFuture};
use kindex_commands::error::{CommandError, CommandResult};
use kindex_commands::install::ClusterOwner;
use kindex_commands::platform::Platform;
use kindex_commands::{interrupt, say};
use tokio_util::sync::CancellationToken;

use super::service::{Announcement, Context, Running, Service};
use crate::health;

/// What runs the service in a group of commands.
pub(super) const SERVE: &str = "serve";

/// One service.
#[derive(Debug)]
pub(super) struct Row {
    /// The name of its command, or of the group in which it is.
    pub(super) name: &'static str,
    /// Its command, or the group.
    pub(super) command: fn() -> clap::Command,
    /// Adds its flags to those of `kindex up`.
    pub(super) up_flags: fn(clap::Command) -> clap::Command,
    /// Runs it alone until Ctrl-C.
    pub(super) run_command: for<'a> fn(&'a Platform, &'a ArgMatches) -> LocalBoxFuture<'a, CommandResult>,
    /// Refuses wrong flags of `kindex up`.
    pub(super) check: fn(&Platform, ClusterOwner, &ArgMatches) -> CommandResult,
    /// Takes its addresses in `kindex up`.
    pub(super) bind_for_up:
        for<'a> fn(&'a Context<'a>, &'a ArgMatches) -> LocalBoxFuture<'a, CommandResult<Option<BoundService>>>,
}

/// How a service that has its addresses begins to work.
type Start = Box<dyn FnOnce(CancellationToken) -> CommandResult<Running>>;

/// A service of `kindex up` that has its addresses.
pub(crate) struct BoundService {
    /// The name of its command.
    pub(crate) name: &'static str,
    /// What people do with it.
    pub(crate) announcement: Option<Announcement>,
    /// Begins to work.
    pub(crate) start: Start,
}

impl Row {
    /// The row of a service.
    pub(super) const fn of<S: Service>() -> Self {
        Self {
            name: S::NAME,
            command: || S::Args::augment_args(clap::Command::new(S::NAME)),
            up_flags: S::UpArgs::augment_args,
            run_command: |platform, flags| run_command::<S>(platform, flags).boxed_local(),
            check: |platform, owner, flags| S::check(platform, owner, &up_args::<S>(flags)?),
            bind_for_up: |context, flags| bind_for_up::<S>(context, flags).boxed_local(),
        }
    }

    /// The row of a service whose command is `serve` among others about what it keeps.
    pub(super) const fn of_group<S: Service, G: Group + 'static>() -> Self {
        Self {
            command: || {
                let group = G::augment_subcommands(clap::Command::new(S::NAME));
                group
                    .about(G::ABOUT)
                    .subcommand_required(true)
                    .arg_required_else_help(true)
                    .subcommand(S::Args::augment_args(clap::Command::new(SERVE)))
            },
            run_command: |platform, flags| match flags.subcommand() {
                Some((SERVE, flags)) => run_command::<S>(platform, flags).boxed_local(),
                Some(_) | None => other::<G>(flags).boxed_local(),
            },
            ..Self::of::<S>()
        }
    }
}

/// The commands beside `serve` in the group of a service.
pub(super) trait Group: clap::Subcommand + 'static {
    /// What the group is about.
    const ABOUT: &'static str;

    /// Runs one of them.
    async fn run(self) -> CommandResult;
}

async fn other<G: Group + 'static>(flags: &ArgMatches) -> CommandResult {
    G::from_arg_matches(flags).map_err(CommandError::usage)?.run().await
}

/// The health answers until the service has ended.
async fn run_command<S: Service>(platform: &Platform, flags: &ArgMatches) -> CommandResult {
    let args = S::Args::from_arg_matches(flags).map_err(CommandError::usage)?;
    let health_addr = S::health_addr(&args);
    let service = S::for_command(platform, args).await?;
    let listener = health::bind(health_addr, "--health-addr").await?;
    let interrupt = interrupt::wait();
    if let Some(announcement) = service.announcement()? {
        let health = listener.local_addr().map_err(CommandError::failure)?;
        say::line(&announcement.step)?;
        say::line(format_args!("http://{health}/readyz and /metrics say how it goes"))?;
    }
    let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
    let running = service.start(stop.clone())?;
    let health = running.health.into_iter().collect();
    let served = tokio::spawn(health::serve(listener, health, running.metrics, ended.clone()));
    let failure = running.failure.unwrap_or_else(|| future::pending().boxed());
    let interrupted = async {
        let done = tokio::select! {
            () = interrupt => Ok(()),
            error = failure => Err(error),
        };
        stop.cancel();
        done
    };
    let ((), done) = tokio::join!(running.until_stopped, interrupted);
    ended.cancel();
    served.await.map_err(CommandError::failure)?;
    done
}

fn up_args<S: Service>(flags: &ArgMatches) -> CommandResult<S::UpArgs> {
    S::UpArgs::from_arg_matches(flags).map_err(CommandError::usage)
}

async fn bind_for_up<S: Service>(context: &Context<'_>, flags: &ArgMatches) -> CommandResult<Option<BoundService>> {
    let Some(service) = S::for_up(context, up_args::<S>(flags)?).await? else {
        return Ok(None);
    };
    Ok(Some(BoundService {
        name: S::NAME,
        announcement: service.announcement()?,
        start: Box::new(|stop| service.start(stop)),
    }))
}
