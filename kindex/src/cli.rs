//! The command line: what can be typed, with help and examples. Parses only;
//! each command's module does the work.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub use kindex_commands::cli::{
    AnswerArgs, AsStoredArg, AtArg, BackfillArgs, CheckVersionsArgs, ClusterArgs, ConvertArgs, DataDirArg, DatabaseArg,
    DiffArgs, DiffForm, DropArgs, DropReferenceArgs, DropVersionArgs, EventForm, EventsArgs, FilterArgs, Form,
    GenerateArgs, GetArgs, GraphArgs, GraphForm, HistoryArgs, LintArgs, LintForm, ListReferencesArgs, MigrateArgs,
    MoveArgs, NatsArgs, ObjectArgs, Output, PlanArgs, PurgeArgs, QuarantineArgs, QuarantineCommand, QueryArgs,
    RecordsArgs, ReferencesArgs, ReferencesCommand, ReleaseArgs, RestoreArgs, ShowVersionsArgs, SidesArgs,
    StartMigrationArgs, StatusArgs, StopMigrationArgs, StoreArgs, TargetArgs, VerifyArgs, VersionSidesArgs,
    VersionsArgs, VersionsCommand, WhyArgs, WhyForm,
};
pub use kindex_commands::one_cluster::FollowArg;

pub use crate::limits::LimitArgs;
pub use crate::orphans::{AllowedOrphans, OrphansArg};
pub use crate::services::{ServiceCommand, UpFlags};

/// Kubernetes custom resources in SQL: stored, archived, queried.
#[derive(Debug, Parser)]
#[command(name = "kindex", version, about, after_help = ROOT_EXAMPLES, propagate_version = true)]
pub struct Cli {
    /// Command to run; default: `up`.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// How much to log, as `level` or `target=level,…`.
    #[arg(
        long,
        global = true,
        env = "KINDEX_LOG",
        default_value = "info",
        value_name = "FILTER"
    )]
    pub log: String,

    /// How log lines look.
    #[arg(long, global = true, env = "KINDEX_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

const ROOT_EXAMPLES: &str = "\
Examples:
  kindex                                  everything on embedded defaults, until Ctrl-C
  kindex up --samples --once              try it: apply one object of each kind, store it, exit
  kindex get pipelineruns -n prod         what SQL holds, live and archived
  kindex diff model/fraud -n prod         what the last change of an object was
  kindex generate --check                 are the emitted files those of crds.toml?";

/// Form of log lines on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run everything in one process: cluster, CRDs, ingester and database.
    Up(UpArgs),
    /// Run one service alone.
    #[command(flatten)]
    Service(ServiceCommand),
    /// Show what SQL holds.
    Get(GetArgs),
    /// Ask a named query of crds.toml, or list them.
    Query(QueryArgs),
    /// Show the versions that an object had, and what each of them changed.
    History(HistoryArgs),
    /// Show what changed in an object between two versions or two moments.
    Diff(DiffArgs),
    /// Show how far SQL lags behind the cluster, per kind, or wait until every kind is settled.
    Status(StatusArgs),
    /// Report every difference between the cluster and SQL.
    Verify(VerifyArgs),
    /// Store what the cluster lists and SQL lacks.
    Backfill(BackfillArgs),
    /// Take the finalizer off all objects, before the ingester stays switched off.
    Release(ReleaseArgs),
    /// List, show, retry and drop objects that the database refused.
    Quarantine(QuarantineArgs),
    /// Create archived or deleted objects in the cluster again, from SQL.
    Restore(RestoreArgs),
    /// Permanently delete rows, as the retention rules allow.
    Purge(PurgeArgs),
    /// Show in which versions objects are stored, and which of them may be dropped.
    Versions(VersionsArgs),
    /// Bring a database to the schema of this program, and fill new columns.
    Migrate(MigrateArgs),
    /// Emit types, schemas and manifests from crds.toml, without a cargo build.
    Generate(GenerateArgs),
    /// Plan the migration from the schema as it is to the one that crds.toml wants.
    Plan(PlanArgs),
    /// Report valid but risky migrations and declarations.
    Lint(LintArgs),
    /// Show which kinds refer to which, and in which order they are deleted.
    Graph(GraphArgs),
    /// Show what holds an object, and what that waits for.
    Why(WhyArgs),
    /// Let a field of an object name another one, such as the network of a cluster.
    Move(MoveArgs),
    /// List the references on an object, or release one that was left behind.
    References(ReferencesArgs),
    /// Show what exists of a kind and what changes, from a running API server.
    Events(EventsArgs),
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(kindex completions bash)                  in this bash; for all, in ~/.bashrc
  kindex completions zsh > \"${fpath[1]}/_kindex\"    where zsh looks, before compinit
  kindex completions fish > ~/.config/fish/completions/kindex.fish";

/// Flags of `kindex up`.
#[derive(Clone, Debug, Args)]
#[command(after_help = UP_EXAMPLES)]
pub struct UpArgs {
    /// Where files go.
    #[command(flatten)]
    pub data_dir: DataDirArg,
    /// Where rows go.
    #[command(flatten)]
    pub database: DatabaseArg,

    /// Address of the embedded Kubernetes API; port 0 takes a free one.
    #[arg(long, env = "KINDEX_API_ADDR", value_name = "ADDR", default_value = "127.0.0.1:6480")]
    pub api_addr: SocketAddr,

    /// Let --api-addr be an address that other machines reach. Token and objects pass unencrypted.
    #[arg(long, env = "KINDEX_ALLOW_REMOTE_CLIENTS")]
    pub allow_remote_clients: bool,

    /// Address of /healthz, /readyz and /metrics; port 0 takes a free one.
    #[arg(
        long,
        env = "KINDEX_HEALTH_ADDR",
        value_name = "ADDR",
        default_value = "127.0.0.1:6481"
    )]
    pub health_addr: SocketAddr,

    /// What runs beside the ingester.
    #[command(flatten)]
    pub services: UpFlags,

    /// What the servers may take.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// Use this cluster instead of the embedded one.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,

    /// The configuration file (metadataStorage, mysql, sqlite and ingester stanzas).
    #[arg(long, env = "KINDEX_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Rows that may be closed this once.
    #[command(flatten)]
    pub orphans: OrphansArg,

    /// Whose objects the database shall have.
    #[command(flatten)]
    pub follow: FollowArg,

    /// Apply one object of each kind through the API and show where it went.
    #[arg(long)]
    pub samples: bool,

    /// Exit 0 as soon as SQL holds everything that the cluster holds.
    #[arg(long)]
    pub once: bool,

    /// With --once or --samples: give up after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
}

const UP_EXAMPLES: &str = "\
Examples:
  kindex up
  kindex up --samples --once
  kindex up --database mysql://root:secret@127.0.0.1:3306/michelangelo
  kindex up --kubeconfig ~/.kube/config --config kindex.yaml";
