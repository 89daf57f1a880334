//! Whether objects are deleted after those that refer to them: the API server leaves the last step to who does that.

use clap::{ArgMatches, Args, Command, FromArgMatches};

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

/// What the flag of `kindex up` says, which is one of another service there.
#[derive(Clone, Debug)]
pub(super) struct UpGraph(pub(super) Option<bool>);

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
        let given = matches.try_get_one::<bool>("deletion").ok().flatten();
        Ok(Self(given.copied()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Self::from_arg_matches(matches).map(|given| *self = given)
    }
}
