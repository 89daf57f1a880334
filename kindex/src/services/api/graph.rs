//! Whether objects are deleted after those that refer to them: the API server leaves the last step to who does that.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use kindex_api::operations::Peers;
use kindex_model::kind::Registry;

/// The flag of `kindex api`.
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
    pub(super) deletion: bool,
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
    /// NAME=URL.
    services: Vec<String>,
}

impl UpGraph {
    /// In a cluster of others, `kindex deletion` is started by whoever wants it.
    pub(super) fn graph(&self, registry: &Registry, is_own_cluster: bool) -> Graph {
        Graph {
            is_at_work: self.deletion.unwrap_or(is_own_cluster),
            peers: self.peers(registry),
        }
    }

    /// Other services, where the flags say, which the service whose flags they are has checked.
    fn peers(&self, registry: &Registry) -> Peers {
        let named = self.services.iter().filter_map(|service| service.split_once('='));
        named.fold(Peers::of(registry), |peers, (name, url)| {
            let mut services = registry.services.iter();
            match services.find(|service| [service.name, service.group].contains(&name)) {
                Some(service) => peers.at(service.group, url),
                None => peers,
            }
        })
    }
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
        let services = matches.try_get_many::<String>("services").ok().flatten();
        Ok(Self {
            deletion: deletion.copied(),
            services: services.into_iter().flatten().cloned().collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Self::from_arg_matches(matches).map(|given| *self = given)
    }
}
