//! Flags of the commands that ask SQL for objects.

use clap::{Args, ValueEnum};

use super::{AtArg, StoreArgs};

/// Flags of `kindex get`.
#[derive(Clone, Debug, Args)]
#[command(after_help = GET_EXAMPLES)]
pub struct GetArgs {
    /// The kind: PipelineRun, pipelinerun, pipelineruns or a short name, each also as NAME.GROUP; or kind/name.
    pub kind: String,
    /// One object by name.
    pub name: Option<String>,

    /// One namespace; default: all, or `default` where a name is given.
    #[arg(short, long)]
    pub namespace: Option<String>,

    /// The object that has or had this uid, also one that was deleted, or whose name another object took.
    #[arg(long, conflicts_with_all = ["name", "all_namespaces", "deleted", "at"])]
    pub uid: Option<String>,

    /// All namespaces (the default); accepted for compatibility with kubectl.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,

    /// Which objects, and in which order.
    #[command(flatten)]
    pub filter: FilterArgs,

    /// Deleted objects too.
    #[arg(long)]
    pub deleted: bool,

    /// A moment in the past.
    #[command(flatten)]
    pub at: AtArg,

    /// How much of the answer, and in which form.
    #[command(flatten)]
    pub answer: AnswerArgs,
}

const GET_EXAMPLES: &str = "\
Examples:
  kindex get models -A
  kindex get pipelineruns -n prod -l 'team in (fraud,risk),!old' -o wide
  kindex get pipelineruns --where state=PIPELINE_RUN_STATE_FAILED --sort update_time:desc
  kindex get pipelineruns --where state=PIPELINE_RUN_STATE_FAILED --count
  kindex get models --where algorithm=xgboost --where 'create_time>=2026-11-01' --explain
  kindex get pipelinerun/nightly -n prod -o yaml --deleted
  kindex get models --uid 6f1c2b5e-… -o yaml
  kindex get pipelineruns --where 'state in (A, B) or (actor = \"x\" and not name like \"tmp-%\")'
  kindex get model/fraud -n prod --at 2026-11-01T12:00:00Z -o yaml
  kindex get models -n prod --at 2d";

/// Conditions and order of a query.
#[derive(Clone, Debug, Args)]
pub struct FilterArgs {
    /// Label selector of Kubernetes: a=b, a!=b, a in (x,y), a notin (x), a, !a, joined by commas.
    #[arg(short = 'l', long, visible_alias = "label", value_name = "SELECTOR")]
    pub selector: Vec<String>,

    /// Field selector of Kubernetes: metadata.name=a,status.state!=X; the fields of all columns.
    #[arg(long, value_name = "SELECTOR")]
    pub field_selector: Vec<String>,

    /// Condition on columns: state=X, `actor in (a, b)`, `name like 'tmp-%'`, `end_time is null`, joined by and, or,
    /// not and parentheses; may be repeated.
    #[arg(long = "where", value_name = "CONDITION")]
    pub conditions: Vec<String>,

    /// Column to sort by, with :desc for largest first; may be repeated.
    #[arg(long, value_name = "COLUMN[:desc]")]
    pub sort: Vec<String>,
}

impl FilterArgs {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        let Self {
            selector,
            field_selector,
            conditions,
            sort,
        } = self;
        [selector, field_selector, conditions, sort]
            .iter()
            .all(|list| list.is_empty())
    }
}

/// How much of an answer is shown, and how.
#[derive(Clone, Debug, Args)]
pub struct AnswerArgs {
    /// At most this many rows; default: 500, or what the query says.
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: Option<u32>,

    /// Continue after the page that returned this token.
    #[arg(long = "continue", value_name = "TOKEN")]
    pub continue_token: Option<String>,

    /// Print how many rows there are on all pages.
    #[arg(long, conflicts_with_all = ["continue_token", "limit"])]
    pub count: bool,

    /// Print the SQL and its query plan instead of rows.
    #[arg(long, conflicts_with = "count")]
    pub explain: bool,

    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,

    /// Where the database is.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Form of a command's answer on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// The kind's printer columns, as kubectl shows them.
    Table,
    /// A table with every extracted column and the version.
    Wide,
    /// The objects as JSON.
    Json,
    /// The objects as YAML.
    Yaml,
    /// `kind/name`, a line each.
    Name,
}

/// Flags of `kindex query`.
#[derive(Clone, Debug, Args)]
#[command(after_help = QUERY_EXAMPLES)]
pub struct QueryArgs {
    /// Name of the query under `[queries]` of crds.toml; without it the queries are listed.
    pub name: Option<String>,

    /// Value of a parameter; once for each.
    #[arg(short, long = "param", value_name = "NAME=VALUE", requires = "name")]
    pub parameters: Vec<String>,

    /// How much of the answer, and in which form.
    #[command(flatten)]
    pub answer: AnswerArgs,
}

const QUERY_EXAMPLES: &str = "\
Examples:
  kindex query
  kindex query failed-runs -p namespace=prod
  kindex query failed-runs -p namespace=prod --explain
  kindex query models-by-algorithm -p algorithm=xgboost --limit 10 -o yaml";
