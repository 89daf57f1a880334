//! `kindex versions`: both sides of each kind side by side, and a verdict for each old version.

use std::fmt::Write as _;

use kindex_migrator::cluster::survey::{MigrationProgress, Survey};
use kindex_migrator::hash::Encoding;
use kindex_migrator::verdict::{Rows, Side};
use kindex_model::kind::Registry;
use serde::Serialize;

use super::sources::{KindVersions, Sources};
use crate::cli::{Form, ShowVersionsArgs};
use crate::error::{CommandError, CommandResult};
use crate::output::{document, table};
use crate::{say, sides};

/// One kind.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct KindReport {
    kind: &'static str,
    versions: Vec<VersionReport>,
    /// `status.storedVersions` of the definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_versions: Option<Vec<String>>,
    /// Versions that the `StorageState` lists; hashes that this program never knew as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    persisted_versions: Option<Vec<String>>,
    migrations: Vec<MigrationReport>,
    history_entries: u64,
    verdicts: Vec<VerdictReport>,
}

/// One version of a kind. What a side that was not asked would say is left out.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionReport {
    version: String,
    declared: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    served: Option<bool>,
    /// Whether the cluster stores objects in it from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<bool>,
    /// Whether the cluster lists it among those that objects may be stored in.
    #[serde(skip_serializing_if = "Option::is_none")]
    listed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<RowsReport>,
}

#[derive(Debug, Serialize)]
struct RowsReport {
    live: u64,
    archived: u64,
    deleted: u64,
    /// Of the archived and deleted ones, those that the last conversion could not convert.
    refused: u64,
}

/// A migration that has not ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MigrationReport {
    name: String,
    running: bool,
    passes: u32,
    done: u64,
    /// By all passes.
    rewritten: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<u64>,
}

/// Whether a version may be dropped.
#[derive(Debug, Serialize)]
struct VerdictReport {
    version: String,
    safe: bool,
    because: Vec<String>,
}

/// Asks, prints, and with `--exit-code` fails where a version may not be dropped.
pub(super) async fn run(registry: &Registry, args: &ShowVersionsArgs) -> CommandResult {
    let kinds = sides::cluster_kinds(registry, &args.kinds)?;
    let sources = Sources::open(registry, &args.sides).await?;
    let surveys = sources.surveys().await?;
    let mut reports = Vec::new();
    for kind in kinds {
        let report = sources.of(kind, &surveys).await.map(|versions| report(&versions));
        reports.push(report?);
    }
    sources.close().await;
    say::print(match args.output {
        Form::Json | Form::Yaml => document(&reports, args.output)?,
        Form::Table => as_text(&reports),
    })?;
    let unsafe_versions: Vec<String> = reports
        .iter()
        .flat_map(|report| {
            let unsafe_ones = report.verdicts.iter().filter(|verdict| !verdict.safe);
            unsafe_ones.map(|verdict| format!("{} {}", report.kind, verdict.version))
        })
        .collect();
    if args.exit_code && !unsafe_versions.is_empty() {
        let versions = unsafe_versions.join(", ");
        return Err(CommandError::failure(format_args!("not safe to drop: {versions}"))
            .hint("docs/src/how-to/drop-a-version.md says what to do about each reason"));
    }
    Ok(())
}

fn report(versions: &KindVersions<'_>) -> KindReport {
    let names = versions.versions();
    let survey = versions.survey();
    let state = survey.and_then(|survey| survey.stored.state.as_ref());
    let old = names.iter().filter(|name| *name != versions.kind.version);
    KindReport {
        kind: versions.kind.name,
        versions: names.iter().map(|name| version_report(versions, name)).collect(),
        stored_versions: survey.map(|survey| survey.stored.stored_versions.clone()),
        persisted_versions: state.map(|state| {
            let persisted = state.persisted.iter();
            persisted.map(|encoding| versions.name_of(encoding)).collect()
        }),
        migrations: survey.map_or_else(Vec::new, |survey| {
            survey.under_way.iter().map(migration_report).collect()
        }),
        history_entries: versions.history_entries,
        verdicts: old.map(|name| verdict(versions, name)).collect(),
    }
}

fn version_report(versions: &KindVersions<'_>, version: &str) -> VersionReport {
    let stored = versions.survey().map(|survey| &survey.stored);
    let served = stored.map(|stored| stored.versions.iter().any(|(name, served)| name == version && *served));
    let rows = match versions.rows_in(version) {
        Side::Answered(Rows {
            live,
            archived,
            deleted,
            refused,
        }) => Some(RowsReport {
            live,
            archived,
            deleted,
            refused,
        }),
        Side::LeftOut | Side::Unasked => None,
    };
    VersionReport {
        version: version.to_owned(),
        declared: versions.kind.version_names().any(|name| name == version),
        served,
        storage: stored.map(|stored| stored.storage == version),
        listed: versions.survey().map(|survey| is_listed(versions, survey, version)),
        rows,
    }
}

fn is_listed(versions: &KindVersions<'_>, survey: &Survey, version: &str) -> bool {
    let stored = &survey.stored;
    let hash = Encoding::Known(versions.hash(version));
    let state = stored.state.as_ref();
    stored.stored_versions.iter().any(|name| name == version)
        || state.is_some_and(|state| state.persisted.contains(&hash) || state.persisted.contains(&Encoding::Unknown))
}

fn migration_report(under_way: &MigrationProgress) -> MigrationReport {
    let estimate = under_way.estimate;
    let left = estimate.and_then(|estimate| estimate.left);
    MigrationReport {
        name: under_way.name.clone(),
        running: under_way.running,
        passes: under_way.passes,
        done: under_way.done,
        rewritten: under_way.rewritten,
        total: estimate.map(|estimate| estimate.total),
        seconds_left: left.map(|left| left.as_secs()),
    }
}

fn verdict(versions: &KindVersions<'_>, version: &str) -> VerdictReport {
    let because: Vec<String> = versions.against(version).iter().map(ToString::to_string).collect();
    VerdictReport {
        version: version.to_owned(),
        safe: because.is_empty(),
        because,
    }
}

fn as_text(reports: &[KindReport]) -> String {
    let heads = [
        "kind", "version", "declared", "served", "storage", "listed", "live", "archived", "deleted",
    ];
    let rows = reports
        .iter()
        .flat_map(|report| report.versions.iter().map(|version| row(report.kind, version)));
    let mut text = table(&heads, rows);
    for report in reports {
        for line in lines(report) {
            writeln!(text, "{}: {line}", report.kind).expect("a string takes any text");
        }
    }
    text
}

fn row(kind: &str, version: &VersionReport) -> Vec<String> {
    let flag = |flag: Option<bool>| {
        let word = flag.map_or("-", |flag| if flag { "yes" } else { "no" });
        word.to_owned()
    };
    let count = |of: fn(&RowsReport) -> u64| {
        let count = version.rows.as_ref().map(of);
        count.map_or_else(|| "-".to_owned(), |count| count.to_string())
    };
    vec![
        kind.to_owned(),
        version.version.clone(),
        flag(Some(version.declared)),
        flag(version.served),
        flag(version.storage),
        flag(version.listed),
        count(|rows| rows.live),
        count(|rows| rows.archived),
        count(|rows| rows.deleted),
    ]
}

/// What is worth a line of its own: kinds with one version have none.
fn lines(report: &KindReport) -> Vec<String> {
    let mut lines = Vec::new();
    if report.verdicts.is_empty() && report.migrations.is_empty() {
        return lines;
    }
    if let Some(stored) = &report.stored_versions {
        let persisted = report.persisted_versions.as_ref();
        let persisted = persisted.map_or_else(
            || "no StorageState".to_owned(),
            |versions| format!("StorageState [{}]", versions.join(", ")),
        );
        lines.push(format!("storedVersions [{}], {persisted}", stored.join(", ")));
    }
    if report.history_entries > 0 {
        let entries = report.history_entries;
        lines.push(format!(
            "the history has {entries} versions of objects, which stay as they were"
        ));
    }
    lines.extend(report.migrations.iter().map(progress));
    lines.extend(report.verdicts.iter().map(|verdict| match verdict.safe {
        true => format!("safe to drop {}: yes", verdict.version),
        false => format!(
            "safe to drop {}: no, because {}",
            verdict.version,
            verdict.because.join("; ")
        ),
    }));
    lines
}

fn progress(migration: &MigrationReport) -> String {
    let name = &migration.name;
    if !migration.running {
        return format!("migration {name} waits for a migrator");
    }
    let (pass, done) = (migration.passes + 1, migration.done);
    let total = migration.total.map_or_else(String::new, |total| format!(" of {total}"));
    let left = migration.seconds_left;
    let left = left.map_or_else(String::new, |seconds| format!(", about {seconds} s left"));
    let rewritten = migration.rewritten;
    format!("migration {name} is in pass {pass}: {done}{total} objects, {rewritten} rewritten so far{left}")
}
