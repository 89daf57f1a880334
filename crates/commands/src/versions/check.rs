//! `kindex versions check`: whether another release knows all versions that cluster and SQL may hold.

use std::path::Path;

use kindex_codegen::lock::{Lock, dropped};
use kindex_migrator::hash::Encoding;
use kindex_migrator::verdict::{Gap, Known, Reason, Side, gaps};
use kindex_model::kind::{Kind, Registry};
use serde::Serialize;

use super::sources::{KindVersions, Sources};
use crate::cli::{CheckVersionsArgs, Form};
use crate::error::{CommandError, CommandResult};
use crate::output::{document, table};
use crate::{say, sides};

/// One kind.
#[derive(Debug, Serialize)]
struct Checked {
    kind: &'static str,
    safe: bool,
    because: Vec<String>,
}

/// Asks, prints, and fails where a version is stored that the release does not know.
pub(super) async fn run(registry: &Registry, args: &CheckVersionsArgs) -> CommandResult {
    let kinds = sides::cluster_kinds(registry, &args.kinds)?;
    let lock = read(&args.target)?;
    let sources = Sources::open(registry, &args.sides).await?;
    let surveys = sources.surveys().await?;
    let mut report = Vec::new();
    for kind in kinds {
        let versions = sources.of(kind, &surveys).await?;
        let because = missing(&lock, kind, &versions);
        report.push(Checked {
            kind: kind.name,
            safe: because.is_empty(),
            because,
        });
    }
    sources.close().await;
    say::print(match args.output {
        Form::Json | Form::Yaml => document(&report, args.output)?,
        Form::Table => table(&["kind", "safe", "because"], report.iter().map(row)),
    })?;
    let unsafe_kinds: Vec<&str> = report.iter().filter(|kind| !kind.safe).map(|kind| kind.kind).collect();
    if unsafe_kinds.is_empty() {
        return Ok(());
    }
    let (kinds, target) = (unsafe_kinds.join(", "), args.target.display());
    Err(
        CommandError::failure(format_args!("the release of {target} must not take over: {kinds}"))
            .hint("docs/src/how-to/drop-a-version.md says what to do about each reason"),
    )
}

/// The lock of a release.
fn read(path: &Path) -> CommandResult<Lock> {
    let wrong = |why: &dyn std::fmt::Display| {
        CommandError::usage(format_args!("{}: {why}", path.display()))
            .hint("name the schema/crds.lock of the other release with --target")
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    dropped::read(&text).map_err(|errors| wrong(&first(&errors)))
}

/// The first error of a file that is no lock, with its line: the others follow from it.
fn first(errors: &str) -> String {
    let line = errors.lines().next().unwrap_or_default();
    let place = line.strip_prefix("schema/crds.lock:").unwrap_or(line);
    match place.split_once(": ") {
        Some((place, what)) => {
            let line = place.split(':').next().unwrap_or(place);
            format!("line {line}: {what}")
        }
        None => place.to_owned(),
    }
}

fn missing(lock: &Lock, kind: &Kind, versions: &KindVersions<'_>) -> Vec<String> {
    let declared = lock.declared().filter(|one| one.kind == kind.name && !one.dropped);
    let known = Known {
        group: kind.group,
        kind: kind.name,
        api_versions: declared.map(|one| format!("{}/{}", one.group, one.version)).collect(),
    };
    let cluster = match versions.cluster {
        // Who owns the definition answers for its versions.
        _ if kind.manifest.is_empty() => Side::LeftOut,
        Side::Answered(survey) => Side::Answered(survey.map(|survey| &survey.stored)),
        Side::LeftOut => Side::LeftOut,
        Side::Unasked => Side::Unasked,
    };
    let rows = match &versions.rows {
        Side::Answered(rows) => Side::Answered(rows),
        Side::LeftOut => Side::LeftOut,
        Side::Unasked => Side::Unasked,
    };
    let gaps = gaps(&known, cluster, rows);
    gaps.into_iter().map(|gap| message(versions, gap)).collect()
}

fn message(versions: &KindVersions<'_>, gap: Gap) -> String {
    match gap {
        Gap::Undeclared => format!("the target declares no version of kind {}", versions.kind.name),
        Gap::NotInstalled => Reason::NotInstalled.to_string(),
        Gap::NoState => Reason::NoState.to_string(),
        Gap::ClusterNotAsked => "the cluster was not asked".to_owned(),
        Gap::SqlNotAsked => "SQL was not asked".to_owned(),
        Gap::Version(version) => format!("the cluster may hold objects in {version}"),
        Gap::Hash(hash) => {
            let name = versions.name_of(&Encoding::Known(hash));
            format!("the StorageState lists {name}")
        }
        Gap::Unknown => "the StorageState lists Unknown, which is any version".to_owned(),
        Gap::Divided => "the API servers write in different versions".to_owned(),
        Gap::Rows { api_version, rows } => format!("SQL has rows in {api_version}: {rows}"),
    }
}

fn row(checked: &Checked) -> Vec<String> {
    let safe = if checked.safe { "yes" } else { "no" };
    vec![checked.kind.to_owned(), safe.to_owned(), checked.because.join("; ")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_lock_is_one_error_with_its_line() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("old.lock");
        let text = "# head\n<<<<<<< HEAD\nfoo bar\n=======\n>>>>>>> next\n";
        std::fs::write(&path, text).expect("written");
        let error = read(&path).expect_err("it is not a lock").to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 2, "{error}");
        assert!(
            lines[0].ends_with("old.lock: line 2: a merge conflict was left in the lock file"),
            "{error}"
        );
    }
}
