//! What can be typed for an ingester that is one of several.

use std::num::{NonZeroU32, NonZeroUsize};

use clap::Args;

/// How replicas divide the work.
#[derive(Clone, Debug, Args)]
pub struct ReplicasArgs {
    /// Be one of several replicas, of which one works and the others wait.
    #[arg(long, env = "KINDEX_LEADER_ELECT")]
    pub leader_elect: bool,

    /// Be one of several replicas that divide the kinds: each kind is in one of so many shards.
    #[arg(long, env = "KINDEX_SHARDS", value_name = "COUNT")]
    pub shards: Option<NonZeroUsize>,

    /// Namespace of the leases; default: the pod's own, or that of the kubeconfig.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAME")]
    pub lease_namespace: Option<String>,

    /// Seconds after which the work of a replica that is silent goes to another one.
    #[arg(long, env = "KINDEX_LEASE_SECONDS", value_name = "SECONDS", default_value = "15")]
    pub lease_seconds: NonZeroU32,

    /// What the leases call this replica, with a random end.
    #[arg(
        long,
        env = "HOSTNAME",
        value_name = "NAME",
        default_value = "kindex",
        hide_env_values = true
    )]
    pub replica_name: String,
}
