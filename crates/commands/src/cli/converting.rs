//! Flags of the command that converts rows to the version that their kind has now.

use clap::Args;

use super::{Form, StoreArgs};

/// Flags of `kindex versions convert`.
#[derive(Clone, Debug, Args)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct ConvertArgs {
    /// Only this kind; may be repeated. Default: every kind with several versions.
    #[arg(short, long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,

    /// Change nothing; say what would be converted, and what would not.
    #[arg(long)]
    pub dry_run: bool,

    /// Most rows a second that are walked over; default: as fast as the database.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub rows_per_second: Option<f64>,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Where the database is.
    #[command(flatten)]
    pub store: StoreArgs,
}

const CONVERT_EXAMPLES: &str = "\
Rows of live objects follow the cluster instead. An ingester may run at the same time. The texts before are kept until
the version is dropped. Interrupted, the next run goes on. Exits 1 where a row stays as it is.

Examples:
  kindex versions convert --dry-run
  kindex versions convert --kind models
  kindex versions convert --rows-per-second 2000 --config /etc/kindex/config.yaml --output json";
