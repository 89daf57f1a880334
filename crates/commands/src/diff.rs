//! `kindex diff`: what changed in an object between two versions, or between two moments.

use jiff::Timestamp;
use kindex_codegen::diag::Style;
use kindex_model::kind::Registry;
use kindex_query::Stored;
use kindex_store::{AsOf, History, HistoryVersion, MetadataStorage};
use serde::Serialize;
use similar::TextDiff;

use crate::changes::{Change, between};
use crate::cli::{DiffArgs, DiffForm, Form};
use crate::color;
use crate::database::unanswered;
use crate::error::{CommandError, CommandResult, chain};
use crate::get;
use crate::history::{chosen, current_version, named, plain, rows_of_name};
use crate::moment::VersionOrTime;
use crate::output::document;
use crate::own_version::VersionView;
use crate::say;
use crate::target::Target;

/// Lines around a change.
const CONTEXT: usize = 3;

/// Reads both sides and prints what differs.
pub async fn run(registry: &Registry, args: &DiffArgs, store: &dyn MetadataStorage) -> CommandResult {
    let target = named(registry, &args.object)?;
    let rows = rows_of_name(&target, store).await?;
    let row = chosen(&target, &rows, args.object.uid.as_deref())?;
    let finder = VersionFinder { target, row, store };
    let to = match args.to {
        Some(moment) => finder.at(moment).await?,
        None => {
            finder
                .at(VersionOrTime::Version(row.object.metadata.resource_version))
                .await?
        }
    };
    let from = match args.from {
        Some(moment) => finder.at(moment).await?,
        None => finder.before(&to).await?,
    };
    let view = VersionView::new(registry, target.kind, args.stored);
    let (from, to) = (view.of(from), view.of(to));
    let text = match args.output {
        DiffForm::Diff => as_lines(&target, &from, &to, args.show_managed_fields)?,
        DiffForm::Json => document(&report(&from, &to, args.show_managed_fields)?, Form::Json)?,
        DiffForm::Yaml => document(&report(&from, &to, args.show_managed_fields)?, Form::Yaml)?,
    };
    say::print(&text)?;
    Ok(())
}

/// Finds the versions to compare.
struct VersionFinder<'a> {
    target: Target<'a>,
    row: &'a Stored,
    store: &'a dyn History,
}

impl VersionFinder<'_> {
    async fn at(&self, moment: VersionOrTime) -> CommandResult<HistoryVersion> {
        let Self { target, row, store } = self;
        let version = match moment {
            VersionOrTime::Version(version) => version,
            VersionOrTime::Time(time) => {
                let found = store.version_at(target.kind, target.namespace, target.name, time).await;
                let found = found.map_err(|error| unanswered(&error))?;
                // A deleted object is compared as it was last.
                return match found {
                    AsOf::Deleted { last, .. } => Ok(current_version(&last)),
                    found => get::stored_as_of(target, found, time).map(|stored| current_version(&stored)),
                };
            }
        };
        let kept = store.version(target.kind, &row.object.metadata.uid, version).await;
        let kept = kept.map_err(|error| unanswered(&error))?;
        let is_current = row.object.metadata.resource_version == version;
        kept.or_else(|| is_current.then(|| current_version(row)))
            .ok_or_else(|| {
                CommandError::failure(format_args!("{target}: version {version} is not kept"))
                    .hint("`kindex history` lists the versions; --uid chooses an older object of that name")
            })
    }

    async fn before(&self, to: &HistoryVersion) -> CommandResult<HistoryVersion> {
        let Self { target, store, .. } = self;
        let older = store.history(target.kind, &to.object.metadata.uid, Some(to), 1).await;
        let mut older = older.map_err(|error| unanswered(&error))?;
        older.pop().ok_or_else(|| {
            let version = to.object.metadata.resource_version;
            CommandError::failure(format_args!("{target}: no version before {version} is kept"))
        })
    }
}

#[derive(Serialize)]
struct Report {
    from: Side,
    to: Side,
    changes: Vec<Change>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    uid: String,
    resource_version: String,
    seen: Timestamp,
}

fn report(from: &HistoryVersion, to: &HistoryVersion, managed_fields: bool) -> CommandResult<Report> {
    let side = |past: &HistoryVersion| Side {
        uid: past.object.metadata.uid.to_string(),
        resource_version: past.object.metadata.resource_version.to_string(),
        seen: past.seen,
    };
    Ok(Report {
        from: side(from),
        to: side(to),
        changes: between(&plain(from, managed_fields)?, &plain(to, managed_fields)?),
    })
}

fn as_lines(
    target: &Target<'_>,
    from: &HistoryVersion,
    to: &HistoryVersion,
    managed_fields: bool,
) -> CommandResult<String> {
    let yaml = |past: &HistoryVersion| {
        let object = plain(past, managed_fields)?;
        serde_saphyr::to_string(&object).map_err(|error| CommandError::failure(chain(&error)))
    };
    let head = |past: &HistoryVersion| format!("{target} @{} {}", past.object.metadata.resource_version, past.seen);
    let (old, new) = (yaml(from)?, yaml(to)?);
    let diff = TextDiff::from_lines(&old, &new);
    let text = diff
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&head(from), &head(to))
        .to_string();
    Ok(match color::of_stdout() {
        Style::Plain => text,
        Style::Colored => colored(&text),
    })
}

/// In git's colors.
fn colored(diff: &str) -> String {
    const BOLD: &str = "\u{1b}[1m";
    const RED: &str = "\u{1b}[31m";
    const GREEN: &str = "\u{1b}[32m";
    const CYAN: &str = "\u{1b}[36m";
    const PLAIN: &str = "\u{1b}[m";
    let lines = diff.lines().map(|line| {
        let color = match line.as_bytes() {
            [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => BOLD,
            [b'-', ..] => RED,
            [b'+', ..] => GREEN,
            [b'@', b'@', ..] => CYAN,
            _ => return format!("{line}\n"),
        };
        format!("{color}{line}{PLAIN}\n")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_is_red_and_what_came_is_green() {
        let diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n";
        let painted = "\u{1b}[1m--- a\u{1b}[m\n\u{1b}[1m+++ b\u{1b}[m\n\u{1b}[36m@@ -1,2 +1,2 @@\u{1b}[m\n same\n\
                        \u{1b}[31m-old\u{1b}[m\n\u{1b}[32m+new\u{1b}[m\n";
        assert_eq!(colored(diff), painted);
    }
}
