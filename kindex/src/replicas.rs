//! A process as one of several of its service: where their leases are, and by what name this one holds them.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use clap::Args;
use kindex_commands::client::Access;
use kindex_runtime::Sharding;
use kindex_runtime::replicas::{LeaseConfig, Timing};
use rand::RngExt;

/// How replicas divide the work.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReplicasArgs {
    /// Be one of several replicas, of which one works and the others wait.
    #[arg(long, env = "KINDEX_LEADER_ELECT")]
    leader_elect: bool,

    /// Be one of several replicas that divide the kinds: each kind is in one of so many shards.
    #[arg(long, env = "KINDEX_SHARDS", value_name = "COUNT")]
    shards: Option<NonZeroUsize>,

    /// Where the leases are, and how long they last.
    #[command(flatten)]
    pub(crate) lease: LeaseArgs,
}

/// The leases of a service.
#[derive(Clone, Debug, Args)]
pub(crate) struct LeaseArgs {
    /// Namespace of the leases; default: the pod's own, or that of the kubeconfig.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAME")]
    lease_namespace: Option<String>,

    /// Seconds after which the work of a replica that is silent goes to another one.
    #[arg(long, env = "KINDEX_LEASE_SECONDS", value_name = "SECONDS", default_value = "15")]
    lease_seconds: NonZeroU32,

    /// What the leases call this replica, with a random end.
    #[arg(
        long,
        env = "HOSTNAME",
        value_name = "NAME",
        default_value = "kindex",
        hide_env_values = true
    )]
    replica_name: String,
}

/// How the kinds are divided, as the command line says.
pub(crate) fn sharding(args: &ReplicasArgs) -> Sharding {
    match (args.shards, args.leader_elect) {
        (Some(shards), _) => Sharding::Shards(shards.get()),
        (None, true) => Sharding::Shards(NonZeroUsize::MIN.get()),
        (None, false) => Sharding::Alone,
    }
}

/// Where the leases are whose names begin with `group`, and how long they last.
pub(crate) fn config(args: &LeaseArgs, access: &Access, group: &str) -> (LeaseConfig, Timing) {
    let namespace = args.lease_namespace.clone();
    let config = LeaseConfig {
        client: access.client.clone(),
        namespace: namespace.unwrap_or_else(|| access.config.default_namespace.clone()),
        group: group.to_owned(),
        me: me(&args.replica_name),
    };
    let lease = Duration::from_secs(args.lease_seconds.get().into());
    (config, Timing::of_lease(lease))
}

/// A name that two processes of one pod do not share either, as a part of a lease's name.
fn me(name: &str) -> String {
    let plain = name.to_lowercase();
    let plain: String = plain
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(48)
        .collect();
    let plain = plain.trim_matches('-');
    let number: u32 = rand::rng().random();
    if plain.is_empty() {
        format!("{number:08x}")
    } else {
        format!("{plain}-{number:08x}")
    }
}

#[cfg(test)]
mod tests {
    use super::me;

    #[test]
    fn a_name_fits_into_that_of_a_lease_and_its_label() {
        for name in ["kindex-0", "Host.Example.", "", "--", &"x".repeat(300)] {
            let me = me(name);
            assert!(me.len() <= 63 && !me.starts_with('-'), "{me}");
            assert!(
                me.chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                "{me}"
            );
        }
        assert_ne!(me("one"), me("one"));
    }
}
