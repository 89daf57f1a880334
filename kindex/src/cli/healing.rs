//! Flags of the commands that check and heal.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{DataDirArg, DatabaseArg};

/// Form of a report on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Columns for people.
    Table,
    /// One JSON document.
    Json,
    /// The same as YAML.
    Yaml,
}

/// The cluster and the database that a command works on.
#[derive(Clone, Debug, Args)]
pub struct SidesArgs {
    /// The cluster; default: the kubeconfig in the data directory, else KUBECONFIG, ~/.kube/config or the pod's own.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,

    /// The ingester's configuration file, for its database.
    #[arg(long, env = "KINDEX_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where files are.
    #[command(flatten)]
    pub data_dir: DataDirArg,
    /// Where rows are; goes over the configuration file.
    #[command(flatten)]
    pub database: DatabaseArg,
}

/// Flags of `kindex verify`.
#[derive(Clone, Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct VerifyArgs {
    /// Only this kind; may be repeated.
    #[arg(short, long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,

    /// Only this namespace.
    #[arg(short, long)]
    pub namespace: Option<String>,

    /// How long a difference has to stand still to be reported.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub settle: f64,

    /// Print at most this many objects that differ; all are counted.
    #[arg(long, value_name = "OBJECTS", default_value_t = 1000)]
    pub limit: usize,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Both sides.
    #[command(flatten)]
    pub sides: SidesArgs,
}

const VERIFY_EXAMPLES: &str = "\
Exits 1 where anything differs.

Examples:
  kindex verify
  kindex verify --kind pipelineruns --namespace prod
  kindex verify --kubeconfig ~/.kube/config --config /etc/kindex/config.yaml --output json";
