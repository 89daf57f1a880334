//! Flags of the commands that check and heal.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{DataDirArg, DatabaseArg, Form};

/// The database that a command works on.
#[derive(Clone, Debug, Args)]
pub struct StoreArgs {
    /// The ingester's configuration file, for its database.
    #[arg(long, env = "KINDEX_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where files are.
    #[command(flatten)]
    pub data_dir: DataDirArg,
    /// Where rows are; overrides the configuration file.
    #[command(flatten)]
    pub database: DatabaseArg,
}

/// The cluster and the database that a command works on.
#[derive(Clone, Debug, Args)]
pub struct SidesArgs {
    /// The cluster; default: the kubeconfig in the data directory, else KUBECONFIG, ~/.kube/config or the pod's own.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,

    /// Where the database is.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Flags of `kindex status`.
#[derive(Clone, Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct StatusArgs {
    /// Only this kind; may be repeated.
    #[arg(short, long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,

    /// Wait until every kind is settled.
    #[arg(long)]
    pub wait: bool,

    /// With --wait: give up after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Both sides.
    #[command(flatten)]
    pub sides: SidesArgs,
}

const STATUS_EXAMPLES: &str = "\
Exits 1 while a kind is not settled. Counts objects and rows; `kindex verify` compares what they say.

Examples:
  kindex status
  kindex status --wait --timeout 300 && kindex verify
  kindex status --kind pipelineruns --kubeconfig ~/.kube/config --database mysql://… --output json";

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

    /// How long a difference must persist before it is reported.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub settle: f64,

    /// Print at most this many objects that differ; all are counted.
    #[arg(long, value_name = "OBJECTS", default_value_t = 1000)]
    pub limit: usize,

    /// Address of another service, by its name in crds.toml or the group of its kinds; overrides the address there. May
    /// be repeated.
    #[arg(long = "service", value_name = "NAME=URL", conflicts_with_all = ["kinds", "namespace"])]
    pub services: Vec<String>,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Both sides.
    #[command(flatten)]
    pub sides: SidesArgs,
}

const VERIFY_EXAMPLES: &str = "\
The columns: OBJECTS that the cluster lists; ROWS of SQL, live, archived and deleted; DIFFERING, objects and rows with a
difference; UNSETTLED, objects that changed at every look while their rows followed, which is not a difference.

Without --kind and --namespace, references are compared as well: declared fields, references on objects, and rows.
Other services are asked about their objects of the kinds that fields may name, and about holders of theirs. What was
left behind there is released there: kindex references drop KIND/NAME REFERENCE --force --reason TEXT.
Exits 1 where anything differs, and where a kind could not be compared because the cluster does not serve it.

Examples:
  kindex verify
  kindex verify --kind pipelineruns --namespace prod
  kindex verify --service region.example.com=https://region.example.com:6443
  kindex verify --kubeconfig ~/.kube/config --config /etc/kindex/config.yaml --output json";

/// Flags of `kindex backfill`.
#[derive(Clone, Debug, Args)]
#[command(after_help = BACKFILL_EXAMPLES)]
pub struct BackfillArgs {
    /// Only this kind; may be repeated.
    #[arg(short, long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,

    /// Most objects per second; default: as fast as the database takes them.
    #[arg(long, value_name = "NUMBER")]
    pub objects_per_second: Option<f64>,

    /// Begin at the beginning, even where an earlier backfill was interrupted.
    #[arg(long)]
    pub restart: bool,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Both sides.
    #[command(flatten)]
    pub sides: SidesArgs,
}

const BACKFILL_EXAMPLES: &str = "\
Goes on where it was interrupted, and writes nothing that is there already.

Examples:
  kindex backfill
  kindex backfill --kind pipelineruns --objects-per-second 500
  kindex backfill --kubeconfig ~/.kube/config --database mysql://…";

/// Flags of `kindex release`.
#[derive(Clone, Debug, Args)]
#[command(after_help = RELEASE_EXAMPLES)]
pub struct ReleaseArgs {
    /// Only this kind; may be repeated.
    #[arg(short, long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,

    /// Change nothing; say how many objects hold the finalizer, and how many of them SQL lacks.
    #[arg(long)]
    pub dry_run: bool,

    /// Release whatever holds the finalizer: objects that SQL does not hold, beside a running ingester, without a
    /// database.
    #[arg(long)]
    pub force: bool,

    /// Do not ask for confirmation. Scripts need it for 100 or more objects, and with --force.
    #[arg(short, long, conflicts_with = "dry_run")]
    pub yes: bool,

    /// Most objects per second; default: as fast as the cluster takes them.
    #[arg(long, value_name = "NUMBER")]
    pub objects_per_second: Option<f64>,

    /// How long to wait, after the first object, for signs of an ingester that is running.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub settle: f64,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Both sides.
    #[command(flatten)]
    pub sides: SidesArgs,
}

const RELEASE_EXAMPLES: &str = "\
For when the ingester or the deletion graph is switched off for good: deletions would wait for it for ever. Only the
finalizers of Kindex itself are removed, also that of the deletion graph. Objects that others refer to, and those that
the graph is deleting, keep them. What SQL lacks is stored first. Refuses while an ingester or a deletion service is
running. May be run again at any time.

Examples:
  kindex release --dry-run
  kindex release
  kindex release --kind pipelineruns --objects-per-second 200 --config /etc/kindex/config.yaml
  kindex release --yes                    in a script
  kindex release --force                  the database is gone

To undo this, switch the ingester on again. With adoptFinalizers it gives the finalizer to every object.";

/// Flags of `kindex quarantine`.
#[derive(Clone, Debug, Args)]
#[command(after_help = QUARANTINE_EXAMPLES)]
pub struct QuarantineArgs {
    /// What to do with the records.
    #[command(subcommand)]
    pub command: QuarantineCommand,
}

const QUARANTINE_EXAMPLES: &str = "\
Examples:
  kindex quarantine list --kind models      what is refused, and why
  kindex quarantine show 6f1c… | jq .spec   the text of one
  kindex quarantine retry --all             once the reason is gone
  kindex quarantine drop 6f1c… --yes        for good";

/// What can be done with objects that the database refused.
#[derive(Clone, Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List refused objects with the reason, the attempts and their times.
    #[command(after_help = "Example:\n  kindex quarantine list --kind models --output json")]
    List(RecordsArgs),
    /// Print the text of a refused object.
    #[command(after_help = "Example:\n  kindex quarantine show 6f1c… | jq .spec")]
    Show(RecordsArgs),
    /// Try again to store refused objects, as the cluster has them now.
    #[command(after_help = "Examples:\n  kindex quarantine retry 6f1c…\n  kindex quarantine retry --all")]
    Retry(RecordsArgs),
    /// Remove records for good. Of an object that is gone, the record may be the only copy.
    #[command(after_help = "Example:\n  kindex quarantine drop 6f1c… --yes")]
    Drop(DropArgs),
}

/// Which records.
#[derive(Clone, Debug, Args)]
pub struct RecordsArgs {
    /// Only records with these uids.
    #[arg(value_name = "UID")]
    pub uids: Vec<String>,

    /// Every record: for `retry` and `drop`, which do nothing unasked.
    #[arg(long, conflicts_with = "uids")]
    pub all: bool,

    /// Only this kind; may be repeated.
    #[arg(short, long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Both sides; only `retry` asks the cluster.
    #[command(flatten)]
    pub sides: SidesArgs,
}

/// Flags of `kindex quarantine drop`.
#[derive(Clone, Debug, Args)]
pub struct DropArgs {
    /// Which.
    #[command(flatten)]
    pub records: RecordsArgs,

    /// Do it; without this flag the command only says what it would remove.
    #[arg(long)]
    pub yes: bool,
}
