//! Which kinds may close how many orphans this once, as the command line says.

use kindex_model::kind::{Kind, Registry};

use crate::cli::AllowedOrphans;
use crate::error::{CommandError, CommandResult};

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

    /// Most rows of this kind: the number that names it goes over the one for all.
    pub(crate) fn of(&self, kind: &Kind) -> usize {
        let said = |of: Option<&str>| self.0.iter().rev().find(|(name, _)| *name == of);
        let rows = said(Some(kind.name)).or_else(|| said(None));
        rows.map_or(0, |(_, rows)| *rows)
    }
}
