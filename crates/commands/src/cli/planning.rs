//! Flags of the commands that read crds.toml and plan changes of the schema.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Form;

/// Flags of `kindex plan`.
#[derive(Clone, Debug, Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub struct PlanArgs {
    /// What the migration is called, in snake_case; default: after what it does.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// A finding of `kindex lint` that may pass in the migration, with the reason; may be repeated.
    #[arg(long = "allow", value_name = "CODE=REASON")]
    pub allowed: Vec<String>,

    /// Write nothing.
    #[arg(long)]
    pub dry_run: bool,

    /// Plan nothing: compare a database with what crds.toml wants, and show every difference; without an address, the
    /// database of KINDEX_DATABASE.
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["name", "allowed", "dry_run", "rehash"]
    )]
    pub against: Option<String>,

    /// The ingester's configuration file, for its database, where --against and KINDEX_DATABASE name none.
    #[arg(long, env = "KINDEX_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// With --against: print the statements that would bring the database there, instead of the differences.
    #[arg(long, requires = "against", conflicts_with = "output")]
    pub sql: bool,

    /// Exit 2 where there is something to plan, or a difference, 0 where there is not.
    #[arg(long)]
    pub exit_code: bool,

    /// Plan nothing: accept the files of the migrations as they are, after you edited one that no database has run yet.
    #[arg(long, conflicts_with_all = ["name", "allowed", "exit_code"])]
    pub rehash: bool,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,

    /// Directory of crds.toml.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
}

const PLAN_EXAMPLES: &str = "\
Compares crds.toml with what the migrations in schema/migrations lead to. Needs no database, except with --against.

Examples:
  kindex plan --dry-run
  kindex plan --name model_budget
  kindex plan --allow K103='nobody reads model.source any more'
  kindex plan --dry-run --exit-code      in CI: fails with 2 where a migration is missing
  kindex plan --against mysql://kindex@db:3306/michelangelo --exit-code
  kindex plan --against sqlite:kindex.db --sql
  kindex plan --rehash                   after editing a planned migration by hand";

/// Flags of `kindex lint`.
#[derive(Clone, Debug, Args)]
#[command(after_help = LINT_EXAMPLES)]
pub struct LintArgs {
    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = LintForm::Text)]
    pub output: LintForm,

    /// Directory of crds.toml.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
}

/// Form of findings on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LintForm {
    /// For people, with the lines in question.
    Text,
    /// One JSON document.
    Json,
    /// Annotations of a GitHub workflow.
    Github,
}

const LINT_EXAMPLES: &str = "\
Looks at the migrations and at crds.toml. Needs no database. Exits 1 where it finds anything.

Examples:
  kindex lint
  kindex lint --output github        in a workflow: findings stand beside the changed lines
  kindex lint --output json | jq -r '.findings[].code'";

/// Flags of `kindex graph`.
#[derive(Clone, Debug, Args)]
#[command(after_help = GRAPH_EXAMPLES)]
pub struct GraphArgs {
    /// The crds.toml of another service, or its directory, whose kinds belong to the graph as well; may be repeated.
    #[arg(long, value_name = "FILE")]
    pub with: Vec<PathBuf>,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = GraphForm::Table)]
    pub output: GraphForm,

    /// Directory of crds.toml.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
}

/// Form of the graph on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphForm {
    /// A line for each reference, by steps: what is deleted first comes first.
    Table,
    /// Below each kind those that are deleted before it.
    Tree,
    /// One JSON document.
    Json,
    /// The same as YAML.
    Yaml,
    /// For Graphviz.
    Dot,
    /// A picture for browsers.
    Svg,
}

const GRAPH_EXAMPLES: &str = "\
Needs no database and no cluster. Exits 1 where a deletion would wait for ever, with the path and the line of each
reference on it, and 2 where there is no crds.toml.

Examples:
  kindex graph
  kindex graph -o tree
  kindex graph --with ../region/crds.toml --with ../identity    the graph of three services, checked as one
  kindex graph -o svg > graph.svg
  kindex graph -o dot | dot -Tpng > graph.png
  kindex graph -o json | jq -r '.kinds[] | select(.step == 1) | .kind'";
