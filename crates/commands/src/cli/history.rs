//! Flags of the commands that look into the past.

use clap::{Args, ValueEnum};

use super::{Form, StoreArgs};
use crate::moment::{Time, VersionOrTime};

/// One object, as people name it.
#[derive(Clone, Debug, Args)]
pub struct ObjectArgs {
    /// The kind: Model, model, models or a short name, each also as NAME.GROUP; or kind/name.
    pub kind: String,
    /// Its name, where it does not follow the kind after a slash.
    pub name: Option<String>,

    /// Its namespace.
    #[arg(short, long, default_value = "default")]
    pub namespace: String,

    /// Which object of that name, where it was deleted and made again; default: the newest.
    #[arg(long)]
    pub uid: Option<String>,

    /// Where the database is.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// In which version of its kind a past object is shown.
#[derive(Clone, Copy, Debug, Args)]
pub struct AsStoredArg {
    /// Show each text as it was stored; default: in the version that the kind has now.
    #[arg(long)]
    pub as_stored: bool,
}

/// Flags of `kindex history`.
#[derive(Clone, Debug, Args)]
#[command(after_help = HISTORY_EXAMPLES)]
pub struct HistoryArgs {
    /// The object.
    #[command(flatten)]
    pub object: ObjectArgs,

    /// At most this many versions, the newest.
    #[arg(long, value_name = "VERSIONS", default_value_t = 20)]
    pub limit: u32,

    /// In which version of the kind.
    #[command(flatten)]
    pub stored: AsStoredArg,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,
}

const HISTORY_EXAMPLES: &str = "\
Only kinds with `history = true` in crds.toml keep their versions.

Examples:
  kindex history model/fraud -n prod
  kindex history model/fraud -n prod --limit 1000 -o json";

/// Flags of `kindex diff`.
#[derive(Clone, Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    /// The object.
    #[command(flatten)]
    pub object: ObjectArgs,

    /// The older side; default: the version before the newer side.
    #[arg(long, value_name = "VERSION|TIME")]
    pub from: Option<VersionOrTime>,

    /// The newer side; default: the newest version.
    #[arg(long, value_name = "VERSION|TIME")]
    pub to: Option<VersionOrTime>,

    /// In which version of the kind.
    #[command(flatten)]
    pub stored: AsStoredArg,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = DiffForm::Diff)]
    pub output: DiffForm,

    /// Compare metadata.managedFields as well.
    #[arg(long)]
    pub show_managed_fields: bool,
}

const DIFF_EXAMPLES: &str = "\
A VERSION is a number as `kindex history` shows it; a TIME is 2026-11-01T12:00:00Z, a day such as 2026-11-01 (its
beginning, in UTC), or a while ago, such as 2h or 3d.

Examples:
  kindex diff model/fraud -n prod
  kindex diff model/fraud -n prod --from 2026-11-01 --to 2026-11-02T08:30:00+02:00
  kindex diff model/fraud -n prod --from 4711 --to 4790 -o json";

/// Form of a comparison on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffForm {
    /// Removed and added lines of YAML.
    Diff,
    /// Every field that changed, with both values, as JSON.
    Json,
    /// The same as YAML.
    Yaml,
}

/// The moment of `kindex get --at`.
#[derive(Clone, Debug, Args)]
pub struct AtArg {
    /// The object, or all of a namespace, as they were then: 2026-11-01T12:00:00Z, a day, or a while ago such as 2h.
    #[arg(long, value_name = "TIME")]
    pub at: Option<Time>,
}
