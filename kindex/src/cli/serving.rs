//! What can be typed for the API server.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Where the API server listens.
#[derive(Clone, Debug, Args)]
pub struct ListenArg {
    /// Address of the API server over cluster and SQL; port 0 takes a free one.
    #[arg(long, env = "KINDEX_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:6482")]
    pub listen: SocketAddr,
}

/// Flags of `kindex api`.
#[derive(Clone, Debug, Args)]
#[command(after_help = API_EXAMPLES)]
pub struct ApiArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArg,

    /// The configuration file; its metadataStorage, mysql and sqlite stanzas say where rows are.
    #[arg(
        long,
        env = "KINDEX_CONFIG",
        value_name = "FILE",
        required_unless_present = "database"
    )]
    pub config: Option<PathBuf>,

    /// `sqlite:PATH` or `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, instead of what the file says.
    #[arg(long, env = "KINDEX_DATABASE", value_name = "ADDRESS", hide_env_values = true)]
    pub database: Option<String>,

    /// The cluster; default: KUBECONFIG, ~/.kube/config, or the pod's own.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
}

const API_EXAMPLES: &str = "\
Examples:
  kindex api --config /etc/kindex/config.yaml
  kindex api --kubeconfig ~/.kube/config --database mysql://kindex:secret@db:3306/michelangelo
  kubectl --server http://127.0.0.1:6482 get models -A";
