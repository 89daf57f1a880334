//! Flags of the commands that ask a running service for runs, and of the one that checks its file.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use kindex_commands::form::Form;

/// What can be asked of the runs service.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Question {
    /// List the runs of a project, or of all, the newest first.
    List(ListArgs),
    /// Show a run, with the last value of each metric.
    Get(GetArgs),
    /// Show the curves of a run.
    Metrics(MetricsArgs),
    /// End a run as killed: its next heartbeat tells the training job.
    Kill(ChangeArgs),
    /// Delete a run with all that belongs to it.
    Delete(ChangeArgs),
    /// Check that ledger, chunks and counters of the service's file agree.
    Verify(VerifyArgs),
}

/// How the service is reached.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerArgs {
    /// Where the service answers over REST.
    #[arg(
        long,
        env = "KINDEX_RUNS_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:3002"
    )]
    pub(crate) url: String,

    /// The API key, where the service asks for one.
    #[arg(long, env = "KINDEX_RUNS_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
}

/// Flags of `kindex runs list`.
#[derive(Clone, Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    /// The project; default: all that the key may see.
    #[arg(short, long, env = "KINDEX_RUNS_PROJECT", value_name = "NAME")]
    pub(crate) project: Option<String>,

    /// Runs in one of these states: running, finished, failed, crashed, killed.
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    pub(crate) status: Vec<String>,

    /// Runs with this tag; may be repeated.
    #[arg(long = "tag", value_name = "KEY:VALUE")]
    pub(crate) tags: Vec<String>,

    /// Runs whose name holds this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,

    /// At most this many runs.
    #[arg(long, value_name = "RUNS", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,

    /// Continue after the page that returned this token.
    #[arg(long = "continue", value_name = "TOKEN")]
    pub(crate) continue_token: Option<String>,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub(crate) output: Form,

    /// The service.
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

const LIST_EXAMPLES: &str = "\
Examples:
  kindex runs list
  kindex runs list -p vision
  kindex runs list -p vision --status failed,crashed --tag team:red
  kindex runs list -p vision --name resnet -o json";

/// Flags of `kindex runs get`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  kindex runs get RUN\n  kindex runs get RUN -o yaml")]
pub(crate) struct GetArgs {
    /// The id of the run.
    pub(crate) run: String,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub(crate) output: Form,

    /// The service.
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Flags of `kindex runs metrics`.
#[derive(Clone, Debug, Args)]
#[command(after_help = METRICS_EXAMPLES)]
pub(crate) struct MetricsArgs {
    /// The id of the run.
    pub(crate) run: String,

    /// The metrics; default: all.
    #[arg(short, long = "name", value_name = "METRIC", value_delimiter = ',')]
    pub(crate) names: Vec<String>,

    /// From this step on.
    #[arg(long, value_name = "STEP")]
    pub(crate) from: Option<i64>,

    /// Up to this step, which is included.
    #[arg(long, value_name = "STEP")]
    pub(crate) to: Option<i64>,

    /// At most so many lines for each metric; of more points, each line shows the mean and the range of several.
    #[arg(long, value_name = "LINES", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_points: u32,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub(crate) output: Form,

    /// The service.
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

const METRICS_EXAMPLES: &str = "\
Examples:
  kindex runs metrics RUN --name loss
  kindex runs metrics RUN --name loss,accuracy --from 1000 --max-points 20
  kindex runs metrics RUN -o json";

/// Flags of `kindex runs kill` and `kindex runs delete`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "The API key needs the scope ingest to kill a run, and admin to delete one.")]
pub(crate) struct ChangeArgs {
    /// The id of the run.
    pub(crate) run: String,

    /// Do not ask; a script has to say so.
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// The service.
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Flags of `kindex runs verify`.
#[derive(Clone, Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// The service's directory; it may be at work.
    #[arg(
        long,
        env = "KINDEX_RUNS_DATA_DIR",
        value_name = "DIR",
        default_value = ".kindex/runs"
    )]
    pub(crate) data_dir: PathBuf,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub(crate) output: Form,
}

const VERIFY_EXAMPLES: &str = "\
Reads all of the file as of one moment: each batch and chunk is decoded, and counted against what is stored beside it.
Exits 1 if something does not agree.

Example:
  kindex runs verify --data-dir .kindex/runs";
