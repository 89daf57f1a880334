//! Flags of `kindex versions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use super::converting::ConvertArgs;
use super::{DataDirArg, Form, SidesArgs};

/// Flags of `kindex versions`.
#[derive(Clone, Debug, Args)]
#[command(after_help = VERSIONS_EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct VersionsArgs {
    /// What to do; where nothing is said, versions are shown.
    #[command(subcommand)]
    pub command: Option<VersionsCommand>,

    /// What to show.
    #[command(flatten)]
    pub show: ShowVersionsArgs,
}

const VERSIONS_EXAMPLES: &str = "\
Shows for each kind what is declared, served and stored, how far a migration is, and whether each old \
version is safe to drop. Reads the tables of the kinds as a whole. A side that is not configured is not \
asked, and then no version is safe to drop; --no-sql says that there are no rows that matter.

Examples:
  kindex versions
  kindex versions --kind models --exit-code      1 while an old version of it is not safe to drop
  kindex versions start models --wait            bring all objects to the stored version
  kindex versions drop models v1 --lock schema/crds.lock
  kindex versions check --target ../next/schema/crds.lock";

/// What can be done with versions.
#[derive(Clone, Debug, Subcommand)]
pub enum VersionsCommand {
    /// Say whether another release knows every version that is stored.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckVersionsArgs),
    /// Ask for a migration of all objects of a kind to the stored version.
    #[command(after_help = START_EXAMPLES)]
    Start(StartMigrationArgs),
    /// Stop the migration of a kind.
    #[command(after_help = "Example:\n  kindex versions stop models")]
    Stop(StopMigrationArgs),
    /// Convert the rows of archived and deleted objects to the version that their kind has now.
    Convert(ConvertArgs),
    /// Remove a version from the CRD's `storedVersions`, if it is safe.
    #[command(after_help = DROP_EXAMPLES)]
    Drop(DropVersionArgs),
}

/// Flags of `kindex versions` alone.
#[derive(Clone, Debug, Args)]
pub struct ShowVersionsArgs {
    /// Only this kind; may be repeated.
    #[arg(short, long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,

    /// Exit 1 where a version is not safe to drop.
    #[arg(long)]
    pub exit_code: bool,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Both sides.
    #[command(flatten)]
    pub sides: VersionSidesArgs,
}

/// The cluster and the database, either of which may be absent.
#[derive(Clone, Debug, Args)]
pub struct VersionSidesArgs {
    /// Leave SQL out: only the cluster decides.
    #[arg(long)]
    pub no_sql: bool,

    /// Both sides.
    #[command(flatten)]
    pub sides: SidesArgs,
}

/// Flags of `kindex versions check`.
#[derive(Clone, Debug, Args)]
pub struct CheckVersionsArgs {
    /// The crds.lock of the release that is to take over, an older or a newer one.
    #[arg(long, value_name = "FILE")]
    pub target: PathBuf,

    /// Only this kind; may be repeated.
    #[arg(short, long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Both sides.
    #[command(flatten)]
    pub sides: VersionSidesArgs,
}

const CHECK_EXAMPLES: &str = "\
Exits 1 where the cluster or SQL may hold a version that the release does not know, or where one of them \
cannot be seen.

Examples:
  kindex versions check --target ../next/schema/crds.lock
  git show v1.4:schema/crds.lock > old.lock && kindex versions check --target old.lock";

/// The cluster alone.
#[derive(Clone, Debug, Args)]
pub struct ClusterArgs {
    /// The cluster; default: the kubeconfig in the data directory, else KUBECONFIG, ~/.kube/config or the pod's own.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,

    /// Where files are.
    #[command(flatten)]
    pub data_dir: DataDirArg,
}

/// Flags of `kindex versions start`.
#[derive(Clone, Debug, Args)]
pub struct StartMigrationArgs {
    /// The kind: Model, model, models or a short name, each also as NAME.GROUP.
    pub kind: String,

    /// Wait until the migration has ended; exit 1 where it failed.
    #[arg(long)]
    pub wait: bool,

    /// With --wait: give up after this many seconds; default: never. The migration goes on.
    #[arg(long, value_name = "SECONDS", requires = "wait", allow_negative_numbers = true)]
    pub timeout: Option<u64>,

    /// Where.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

const START_EXAMPLES: &str = "\
A migrator has to run: `kindex migrator`, or `kindex up`.

Examples:
  kindex versions start models
  kindex versions start models --wait --timeout 3600";

/// Flags of `kindex versions stop`.
#[derive(Clone, Debug, Args)]
pub struct StopMigrationArgs {
    /// The kind: Model, model, models or a short name, each also as NAME.GROUP.
    pub kind: String,

    /// Where.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Flags of `kindex versions drop`.
#[derive(Clone, Debug, Args)]
pub struct DropVersionArgs {
    /// The kind: Model, model, models or a short name, each also as NAME.GROUP.
    pub kind: String,

    /// The version: v1.
    #[arg(id = "old_version", value_name = "VERSION")]
    pub version: String,

    /// Note the drop in this crds.lock; otherwise the line to add is printed.
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,

    /// Both sides.
    #[command(flatten)]
    pub sides: VersionSidesArgs,
}

const DROP_EXAMPLES: &str = "\
Changes nothing and exits 1 while something stands against it. The objects stay as they are.

Examples:
  kindex versions drop models v1
  kindex versions drop models v1 --lock schema/crds.lock";
