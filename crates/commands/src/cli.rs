//! The flags of commands: what can be typed after each, with help and examples. Parses only; each command's module does
//! the work.

use std::path::PathBuf;

use clap::Args;

mod repair;

mod history;

mod query;

mod events;

mod moving;

mod planning;

mod references;

mod maintenance;

mod converting;

mod versions;

pub use events::{EventForm, EventsArgs};
pub use history::{AsStoredArg, AtArg, DiffArgs, DiffForm, HistoryArgs, ObjectArgs};
pub use maintenance::{MigrateArgs, PurgeArgs, RestoreArgs};
pub use moving::MoveArgs;
pub use planning::{GraphArgs, GraphForm, LintArgs, LintForm, PlanArgs};
pub use query::{AnswerArgs, FilterArgs, GetArgs, Output, QueryArgs};
pub use references::{
    DropReferenceArgs, ListReferencesArgs, ReferencesArgs, ReferencesCommand, TargetArgs, WhyArgs, WhyForm,
};
pub use repair::{
    BackfillArgs, DropArgs, QuarantineArgs, QuarantineCommand, RecordsArgs, ReleaseArgs, SidesArgs, StatusArgs,
    StoreArgs, VerifyArgs,
};
pub use versions::{
    CheckVersionsArgs, ClusterArgs, ConvertArgs, DropVersionArgs, ShowVersionsArgs, StartMigrationArgs,
    StopMigrationArgs, VersionSidesArgs, VersionsArgs, VersionsCommand,
};

pub use crate::form::Form;
pub use crate::nats::NatsArgs;

/// Where the database is.
#[derive(Clone, Debug, Args)]
pub struct DatabaseArg {
    /// `sqlite:PATH` or `mysql://USER:PASSWORD@HOST:PORT/DATABASE`; default: kindex.db in the data directory.
    #[arg(long, env = "KINDEX_DATABASE", value_name = "ADDRESS", hide_env_values = true)]
    pub database: Option<String>,
}

/// The data directory where none is named.
pub const DATA_DIR: &str = ".kindex";

/// Where a run keeps its files.
#[derive(Clone, Debug, Args)]
pub struct DataDirArg {
    /// Directory of kubeconfig, token, cluster.db and kindex.db; made when absent.
    #[arg(long, env = "KINDEX_DATA_DIR", value_name = "DIR", default_value = DATA_DIR)]
    pub data_dir: PathBuf,
}

/// Flags of `kindex generate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  kindex generate\n  kindex generate --check")]
pub struct GenerateArgs {
    /// Write nothing; exit 1 with a diff when an emitted file is stale or orphaned.
    #[arg(long)]
    pub check: bool,

    /// Directory of crds.toml.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
}
