//! Flags of the commands that bring rows back into the cluster, remove them for good, or change their tables.

use clap::Args;

use super::{Form, SidesArgs, StoreArgs};
use crate::moment::{Time, VersionOrTime};

/// Flags of `kindex restore`.
#[derive(Clone, Debug, Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub struct RestoreArgs {
    /// The kind: Model, model, models or a short name, each also as NAME.GROUP; or kind/name.
    pub kind: String,
    /// One object by name; without it, all that --archived and --deleted say.
    pub name: Option<String>,

    /// One namespace; default: all, or `default` where a name is given.
    #[arg(short, long)]
    pub namespace: Option<String>,

    /// The object that had this uid; default: the archived one of the name, else the one deleted last.
    #[arg(long, conflicts_with_all = ["archived", "deleted", "selector", "since"])]
    pub uid: Option<String>,

    /// Restore it under this name: its own may belong to another object by now.
    #[arg(long = "as", value_name = "NEW-NAME", conflicts_with_all = ["archived", "deleted", "selector", "since"])]
    pub new_name: Option<String>,

    /// Its text as it was then, for kinds with a history: a version or a time, as in `kindex diff`.
    #[arg(long, value_name = "VERSION|TIME", conflicts_with_all = ["archived", "deleted", "selector", "since"])]
    pub at: Option<VersionOrTime>,

    /// All archived objects.
    #[arg(long, alias = "evicted", conflicts_with = "name")]
    pub archived: bool,

    /// All deleted objects; for each name, the one deleted last.
    #[arg(long, conflicts_with = "name")]
    pub deleted: bool,

    /// Of these, only those that a label selector of Kubernetes matches; may be repeated.
    #[arg(
        short = 'l',
        long,
        visible_alias = "label",
        value_name = "SELECTOR",
        conflicts_with = "name"
    )]
    pub selector: Vec<String>,

    /// Of these, only those archived or deleted at or after this time: 2026-11-01T12:00:00Z, a day, or a while ago such
    /// as 2h.
    #[arg(long, value_name = "TIME", conflicts_with = "name")]
    pub since: Option<Time>,

    /// Create nothing; show what the cluster would answer.
    #[arg(long)]
    pub dry_run: bool,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Both sides.
    #[command(flatten)]
    pub sides: SidesArgs,
}

const RESTORE_EXAMPLES: &str = "\
The new object has a new uid, and the old one in an annotation. Exits 1 where one does not come back.

Examples:
  kindex restore model/fraud -n prod --dry-run
  kindex restore model/fraud -n prod
  kindex restore models --uid 6f1c2b5e-… --as fraud-2025
  kindex restore model/fraud -n prod --at 2026-11-01T12:00:00Z
  kindex restore pipelineruns --deleted --since 2h -n prod -l 'team in (risk,fraud)'
  kindex restore models --archived --dry-run -o json";

/// Flags of `kindex purge`.
#[derive(Clone, Debug, Args)]
#[command(after_help = PURGE_EXAMPLES)]
pub struct PurgeArgs {
    /// Only this kind; may be repeated.
    #[arg(short, long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,

    /// Remove nothing; say what would go.
    #[arg(long)]
    pub dry_run: bool,

    /// `kindex deletion` runs: of kinds that name objects of other services, or have a cleanup, request the deletion of
    /// archived objects. Without this, these stay.
    #[arg(long)]
    pub deletion: bool,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Where the database is.
    #[command(flatten)]
    pub store: StoreArgs,
}

const PURGE_EXAMPLES: &str = "\
A kind has a rule where crds.toml has [kinds.X.retention]. Rows of objects that are in the cluster never go, rows of
archived objects only where the rule says `evicted = true`. Interrupted, the next run goes on.

Examples:
  kindex purge --dry-run
  kindex purge
  kindex purge --kind pipelineruns --config /etc/kindex/config.yaml --output json";

/// Flags of `kindex migrate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = MIGRATE_EXAMPLES)]
pub struct MigrateArgs {
    /// Change nothing; say which steps would run.
    #[arg(long)]
    pub dry_run: bool,

    /// Where nothing is lacking, fill columns once more: an older program may have written rows after they were filled.
    #[arg(long, conflicts_with = "dry_run")]
    pub refill: bool,

    /// Take over the tables that another program made, such as Michelangelo's own ingester, which must be stopped: they
    /// become this program's and keep every row.
    #[arg(long, conflicts_with = "refill")]
    pub adopt: bool,

    /// With --adopt: a kind all of whose live rows are of archived objects; may be repeated. Objects that say that they
    /// are immutable are known without it.
    #[arg(long = "archived", alias = "evicted", value_name = "KIND", requires = "adopt")]
    pub archived: Vec<String>,

    /// Most rows a second that are read to fill columns; default: as fast as the database.
    #[arg(long, value_name = "N")]
    pub rows_per_second: Option<f64>,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Where the database is.
    #[command(flatten)]
    pub store: StoreArgs,
}

const MIGRATE_EXAMPLES: &str = "\
Runs the migrations of schema/migrations that the database lacks, as they were when this program was built, and fills
new columns from the stored objects. Of several that start at once one runs and the others wait. Interrupted, the next
run goes on. `kindex plan` writes migrations.

Examples:
  kindex migrate --dry-run
  kindex migrate --database mysql://kindex@db:3306/michelangelo
  kindex migrate --config /etc/kindex/config.yaml --rows-per-second 2000
  kindex migrate --adopt --dry-run       on a database of Michelangelo's own schema: what would happen
  kindex migrate --adopt --archived models
  kindex migrate --refill                once no program of the older schema writes any more";
