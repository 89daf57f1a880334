//! Flags of the commands that plan changes of the schema.

use std::path::PathBuf;

use clap::Args;

use super::Form;

/// Flags of `kindex plan`.
#[derive(Clone, Debug, Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub struct PlanArgs {
    /// What the migration is called, in snake_case; default: after what it does.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Write nothing.
    #[arg(long)]
    pub dry_run: bool,

    /// Exit 2 where there is something to plan, 0 where there is not.
    #[arg(long)]
    pub exit_code: bool,

    /// Plan nothing: take the files of the migrations as they are, after an edit of one that ran nowhere yet.
    #[arg(long, conflicts_with_all = ["name", "exit_code"])]
    pub rehash: bool,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Directory of crds.toml.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
}

const PLAN_EXAMPLES: &str = "\
Compares crds.toml with what the migrations in schema/migrations lead to. Needs no database.

Examples:
  kindex plan --dry-run
  kindex plan --name model_budget
  kindex plan --dry-run --exit-code      in CI: fails with 2 where a migration is missing
  kindex plan --rehash                   after editing a planned migration by hand";
