//! Which kinds may close how many orphans this once, as the command line says.

use std::str::FromStr;

use clap::Args;
use kindex_commands::error::{CommandError, CommandResult};
use kindex_model::kind::{Kind, Registry};

/// What `kindex up` and `kindex ingester` may do once.
#[derive(Clone, Debug, Args)]
pub struct OrphansArg {
    /// Compare SQL with the whole cluster first, and this once close up to this many rows of a kind whose objects are
    /// gone, even beyond maxOrphans and maxOrphanPercent; may be repeated.
    #[arg(long, value_name = "[KIND=]ROWS")]
    pub allow_orphans: Vec<AllowedOrphans>,
}

/// So many rows, of one kind or of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedOrphans {
    /// The kind; `None`: each.
    pub kind: Option<String>,
    /// Most rows.
    pub rows: usize,
}

impl FromStr for AllowedOrphans {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rows) = match text.split_once('=') {
            Some((kind, rows)) => (Some(kind.to_owned()), rows),
            None => (None, text),
        };
        let rows = rows.parse();
        let rows = rows.map_err(|_| "write a number, or a kind and a number such as Model=600".to_owned())?;
        Ok(Self { kind, rows })
    }
}

/// What `--allow-orphans` says, with kinds that exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowance(Vec<(Option<&'static str>, usize)>);

impl Allowance {
    /// Finds the kinds.
    pub(crate) fn new(registry: &Registry, allowed: &[AllowedOrphans]) -> CommandResult<Self> {
        let found = allowed.iter().map(|allowed| {
            let Some(name) = &allowed.kind else {
                return Ok((None, allowed.rows));
            };
            let kind = registry.find(name).ok_or_else(|| {
                let known: Vec<_> = registry.kinds.iter().map(|kind| kind.name).collect();
                CommandError::usage(format_args!("--allow-orphans: unknown kind {name:?}"))
                    .hint(format_args!("one of: {}", known.join(", ")))
            })?;
            Ok((Some(kind.name), allowed.rows))
        });
        found.collect::<CommandResult<_>>().map(Self)
    }

    /// Most rows of this kind: the number that names it overrides the one for all.
    pub(crate) fn of(&self, kind: &Kind) -> usize {
        let counted = |of: Option<&str>| self.0.iter().rev().find(|(name, _)| *name == of);
        let rows = counted(Some(kind.name)).or_else(|| counted(None));
        rows.map_or(0, |(_, rows)| *rows)
    }
}
