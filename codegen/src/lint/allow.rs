//! Findings that are allowed in the file: `-- kindex:allow K101: reason` in a migration, `allow` in `crds.toml`. An
//! allowance without a reason takes effect and is reported; one without a finding is reported.

use std::ops::Range;

use super::code::Code;
use super::{Found, MigrationFile};
use crate::diag::messages;
use crate::dialect::Verb;
use crate::plan::{ALLOW, Block, Script};
use crate::source::{FileId, Span};
use crate::spec::{AllowSpec, Spec};

/// One allowance.
struct Allowance {
    code: Option<Code>,
    reason: String,
    span: Span,
    /// Findings in this span are allowed.
    reach: Span,
    /// `None` in the declaration.
    written: Option<Written>,
    used: bool,
}

/// What an allowance of a migration has in common with its copies in the migration's other files.
#[derive(PartialEq, Eq)]
struct Written {
    /// The number of the migration.
    migration: u32,
    /// The verb, the table and the object of its step; `None` in front of the steps.
    step: Option<(Option<Verb>, String, String)>,
    line: String,
}

impl Allowance {
    /// Whether both are one allowance, in files of one migration.
    fn is_copy_of(&self, other: &Self) -> bool {
        self.written.is_some() && self.written == other.written && self.reach.file != other.reach.file
    }
}

/// Removes allowed findings, and reports allowances without a reason or without a finding. Returns how many findings
/// were allowed.
pub(super) fn apply(
    found: &mut Vec<Found>,
    spec: &Spec,
    crds: (FileId, &str),
    migrations: &[MigrationFile<'_>],
) -> usize {
    let mut allowances = in_declaration(spec, crds);
    allowances.extend(migrations.iter().flat_map(in_migration));
    let before = found.len();
    found.retain(|found| {
        let mut allowed = false;
        for allowance in &mut allowances {
            let reaches = found
                .diagnostic
                .span()
                .is_some_and(|span| contains(allowance.reach, span));
            if reaches && allowance.code == Some(found.code) {
                allowance.used = true;
                allowed = true;
            }
        }
        !allowed
    });
    let removed = before - found.len();
    report(&allowances, found);
    removed
}

/// Those that allow nothing, and those without a reason. `kindex plan --allow` writes an allowance into each file of a
/// migration, where its finding may be in one of them alone: the first file speaks for all.
fn report(allowances: &[Allowance], found: &mut Vec<Found>) {
    for allowance in allowances {
        let copies = || allowances.iter().filter(|other| other.is_copy_of(allowance));
        if copies().any(|copy| copy.span < allowance.span) {
            continue;
        }
        let is_used = allowance.used || copies().any(|copy| copy.used);
        if !is_used {
            let is_known = allowance.code.is_some();
            let diagnostic = messages::allows_nothing(is_known, allowance.span);
            found.push(Found {
                code: Code::K902,
                diagnostic,
            });
        } else if allowance.reason.is_empty() {
            found.push(Found {
                code: Code::K901,
                diagnostic: messages::allowed_without_reason(allowance.span),
            });
        }
    }
}

fn contains(reach: Span, span: Span) -> bool {
    reach.file == span.file && reach.start <= span.start && span.end <= reach.end
}

/// A line in front of the steps reaches the whole file, one in a step that step.
fn in_migration(migration: &MigrationFile<'_>) -> Vec<Allowance> {
    let MigrationFile { file, text, number, .. } = *migration;
    let script = Script::parse(text);
    let mut allowances = Vec::new();
    let mut add = |line: &(Range<usize>, &str), block: Option<&Block<'_>>| {
        let Some(words) = line.1.strip_prefix(ALLOW.trim_end()) else {
            return;
        };
        let (code, reason) = words.split_once(':').unwrap_or((words, ""));
        allowances.push(Allowance {
            code: Code::of_name(code.trim()),
            reason: reason.trim().to_owned(),
            span: Span::new(file, line.0.clone()),
            reach: Span::new(file, block.map_or(0..text.len(), |block| block.range.clone())),
            written: Some(Written {
                migration: number,
                step: block.map(|block| (block.verb, block.table.to_owned(), block.object.to_owned())),
                line: line.1.to_owned(),
            }),
            used: false,
        });
    };
    for line in &script.comments {
        add(line, None);
    }
    for block in &script.blocks {
        for line in &block.comments {
            add(line, Some(block));
        }
    }
    allowances
}

/// A kind's and a query's allowances reach from their name to that of the next one in the file.
fn in_declaration(spec: &Spec, (crds, text): (FileId, &str)) -> Vec<Allowance> {
    let kinds = spec.kinds.iter().map(|kind| (kind.name.span.start, &kind.allow));
    let queries = spec.queries.iter().map(|query| (query.name.span.start, &query.allow));
    let mut entries: Vec<(usize, &Vec<AllowSpec>)> = kinds.chain(queries).collect();
    entries.sort_by_key(|(start, _)| *start);
    let mut allowances = Vec::new();
    for (at, (start, allowed)) in entries.iter().enumerate() {
        let end = entries.get(at + 1).map_or(text.len(), |(next, _)| *next);
        allowances.extend(allowed.iter().map(|allow| {
            Allowance {
                code: Code::of_name(&allow.code.value),
                reason: allow
                    .reason
                    .as_ref()
                    .map_or_else(String::new, |reason| reason.value.trim().to_owned()),
                span: allow.code.span,
                reach: Span::new(crds, *start..end),
                written: None,
                used: false,
            }
        }));
    }
    allowances
}
