//! The services on the command line: their commands among the others, and their flags among those of `kindex up`.

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use kindex_commands::error::CommandResult;
use kindex_commands::install::ClusterOwner;
use kindex_commands::platform::Platform;

use super::ALL;
use super::row::{BoundService, Row};
use super::service::Context;

/// The command of a service, as it was typed.
#[derive(Clone, Debug)]
pub struct ServiceCommand {
    service: &'static Row,
    flags: ArgMatches,
}

impl ServiceCommand {
    /// Runs the service until Ctrl-C.
    pub(crate) async fn run(&self, platform: &Platform) -> CommandResult {
        (self.service.run_command)(platform, &self.flags).await
    }

    fn find(name: &str) -> Option<&'static Row> {
        ALL.iter().find(|service| service.name == name)
    }
}

impl Subcommand for ServiceCommand {
    fn augment_subcommands(program: Command) -> Command {
        ALL.iter()
            .fold(program, |program, service| program.subcommand((service.command)()))
    }

    fn augment_subcommands_for_update(program: Command) -> Command {
        Self::augment_subcommands(program)
    }

    fn has_subcommand(name: &str) -> bool {
        Self::find(name).is_some()
    }
}

impl FromArgMatches for ServiceCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let found = matches.subcommand().and_then(|(name, flags)| {
            let flags = flags.clone();
            Self::find(name).map(|service| Self { service, flags })
        });
        found.ok_or_else(|| clap::Error::new(clap::error::ErrorKind::MissingSubcommand))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Self::from_arg_matches(matches).map(|typed| *self = typed)
    }
}

/// The flags of `kindex up` for what runs beside the ingester, as they were typed.
#[derive(Clone, Debug)]
pub struct UpFlags(ArgMatches);

impl UpFlags {
    /// Refuses what is wrong with them in this cluster, whatever they meet there.
    pub(crate) fn check(&self, platform: &Platform, owner: ClusterOwner) -> CommandResult {
        ALL.iter()
            .try_for_each(|service| (service.check)(platform, owner, &self.0))
    }

    /// Takes the addresses of the services that are part of `kindex up`.
    pub(crate) async fn bind(&self, context: &Context<'_>) -> CommandResult<Vec<BoundService>> {
        let mut parts = Vec::new();
        for service in ALL {
            parts.extend((service.bind_for_up)(context, &self.0).await?);
        }
        Ok(parts)
    }
}

impl Args for UpFlags {
    fn augment_args(up: Command) -> Command {
        ALL.iter().fold(up, |up, service| (service.up_flags)(up))
    }

    fn augment_args_for_update(up: Command) -> Command {
        Self::augment_args(up)
    }
}

impl FromArgMatches for UpFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Self::from_arg_matches(matches).map(|typed| *self = typed)
    }
}
