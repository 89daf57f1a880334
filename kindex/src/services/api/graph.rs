//! Whether objects are deleted after those that refer to them, over several services: the API server leaves the last
//! step to who does that.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use kindex_api::operations::Peers;
use kindex_commands::addresses::AddressArgs;
use kindex_commands::error::CommandResult;
use kindex_model::kind::Registry;

/// The flags of `kindex api`.
#[derive(Clone, Debug, Args)]
pub(super) struct GraphArgs {
    /// Leave it to `kindex deletion` to delete archived objects that others may name, after those; without it, they are
    /// deleted as soon as no reference is on them.
    #[arg(
        long,
        env = "KINDEX_DELETION",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value = "true",
        default_missing_value = "true"
    )]
    deletion: bool,

    /// Where other services are.
    #[command(flatten)]
    services: AddressArgs,
}

impl GraphArgs {
    /// # Errors
    /// An address that is none, or of a service that crds.toml does not declare.
    pub(super) fn graph(&self, registry: &Registry) -> CommandResult<Graph> {
        Ok(Graph {
            is_at_work: self.deletion,
            peers: peers(registry, &self.services)?,
        })
    }
}

/// The graph as the API server has it.
pub(super) struct Graph {
    /// Whether `kindex deletion` ends the deletions of tombstones.
    pub(super) is_at_work: bool,
    /// Other services.
    pub(super) peers: Peers,
}

/// What the flags of `kindex up` say, which are some of another service there.
#[derive(Clone, Debug)]
pub(super) struct UpGraph {
    deletion: Option<bool>,
    services: AddressArgs,
}

impl UpGraph {
    /// In a cluster of others, `kindex deletion` is started by whoever wants it.
    ///
    /// # Errors
    /// As those of [`GraphArgs::graph`].
    pub(super) fn graph(&self, registry: &Registry, is_own_cluster: bool) -> CommandResult<Graph> {
        Ok(Graph {
            is_at_work: self.deletion.unwrap_or(is_own_cluster),
            peers: peers(registry, &self.services)?,
        })
    }
}

/// Other services, where the flags say.
fn peers(registry: &Registry, services: &AddressArgs) -> CommandResult<Peers> {
    let moved = services.moved(registry)?.into_iter();
    Ok(moved.fold(Peers::of(registry), |peers, (service, url)| {
        peers.at(service.group, url)
    }))
}

impl Args for UpGraph {
    fn augment_args(up: Command) -> Command {
        up
    }

    fn augment_args_for_update(up: Command) -> Command {
        up
    }
}

impl FromArgMatches for UpGraph {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let deletion = matches.try_get_one::<bool>("deletion").ok().flatten();
        Ok(Self {
            deletion: deletion.copied(),
            services: AddressArgs::among(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Self::from_arg_matches(matches).map(|given| *self = given)
    }
}
