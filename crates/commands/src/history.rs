//! `kindex history`: the versions of an object, and in short what each of them changed.

use jiff::Timestamp;
use kindex_model::kind::Registry;
use kindex_model::object::Uid;
use kindex_query::Stored;
use kindex_store::{History, HistoryVersion, MetadataStorage, RowsOfName};
use serde::Serialize;
use serde_json::Value;

use crate::changes::{self, between, without_noise};
use crate::cli::{Form, HistoryArgs, ObjectArgs};
use crate::database::unanswered;
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{document, table};
use crate::own_version::VersionView;
use crate::say;
use crate::target::{Target, kind_and_name, with_history};

/// Reads the versions and prints them.
pub async fn run(registry: &Registry, args: &HistoryArgs, store: &dyn MetadataStorage) -> CommandResult {
    let target = named(registry, &args.object)?;
    let rows = rows_of_name(&target, store).await?;
    let row = chosen(&target, &rows, args.object.uid.as_deref())?;
    // One more, for the oldest one shown is compared with it.
    let limit = args.limit.saturating_add(1);
    let view = VersionView::new(registry, target.kind, args.stored);
    let versions = versions(&target, row, limit, store).await?;
    let versions: Vec<HistoryVersion> = versions.into_iter().map(|past| view.of(past)).collect();
    let report = report(&target, row, &versions, args.limit as usize)?;
    match args.output {
        Form::Table => say::print(as_table(&report))?,
        Form::Json | Form::Yaml => say::print(document(&report, args.output)?)?,
    }
    if versions.len() > report.versions.len() {
        say::note(format_args!("There are older versions: --limit shows more."));
    }
    if rows.len() > 1 {
        let others = rows.iter().map(|row| &*row.object.metadata.uid.0);
        let others: Vec<&str> = others.filter(|uid| **uid != *report.uid).collect();
        say::note(format_args!("Others had the name before: --uid {}", others.join(", ")));
    }
    Ok(())
}

/// The object that a command is about.
pub(crate) fn named<'a>(registry: &Registry, args: &'a ObjectArgs) -> CommandResult<Target<'a>> {
    let (kind, name) = kind_and_name(registry, &args.kind, args.name.as_deref())?;
    with_history(registry, kind)?;
    let Some(name) = name else {
        let error = CommandError::usage(format_args!("which {}?", kind.name));
        return Err(error.hint(format_args!("write {}/NAME", kind.singular)));
    };
    Ok(Target::new(kind, &args.namespace, name))
}

/// All rows of a name.
pub(crate) async fn rows_of_name(target: &Target<'_>, store: &dyn RowsOfName) -> CommandResult<Vec<Stored>> {
    let rows = store.rows_of_name(target.kind, target.namespace, target.name).await;
    rows.map_err(|error| unanswered(&error))
}

/// The row that was asked for; the newest where none was.
pub(crate) fn chosen<'a>(target: &Target<'_>, rows: &'a [Stored], uid: Option<&str>) -> CommandResult<&'a Stored> {
    let is_wanted = |row: &&Stored| uid.is_none_or(|uid| *row.object.metadata.uid.0 == *uid);
    rows.iter().find(is_wanted).ok_or_else(|| {
        let what = uid.map(|uid| format!(" with uid {uid}")).unwrap_or_default();
        CommandError::failure(format_args!("{target}{what}: never stored")).hint("another namespace? name it with -n")
    })
}

/// The newest versions. A row's own version is one of them, also where the history began after it was written.
async fn versions(
    target: &Target<'_>,
    row: &Stored,
    limit: u32,
    store: &dyn History,
) -> CommandResult<Vec<HistoryVersion>> {
    let uid: &Uid = &row.object.metadata.uid;
    let kept = store.history(target.kind, uid, None, limit).await;
    let mut kept = kept.map_err(|error| unanswered(&error))?;
    let newest = kept.first().filter(|past| past.branch == 0);
    let newest = newest.map(|past| past.object.metadata.resource_version);
    if newest < Some(row.object.metadata.resource_version) {
        kept.insert(0, current_version(row));
    }
    Ok(kept)
}

/// The version that a row holds.
pub(crate) fn current_version(row: &Stored) -> HistoryVersion {
    HistoryVersion {
        object: row.object.clone(),
        seen: row.update_time.unwrap_or(Timestamp::UNIX_EPOCH),
        branch: 0,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    kind: &'static str,
    namespace: String,
    name: String,
    uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evicted: Option<Timestamp>,
    versions: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    resource_version: String,
    seen: Timestamp,
    /// The cluster lost the version when it was restored from a backup.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lost: bool,
    /// Paths of the fields that differ from the version before; absent where none is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<String>>,
    #[serde(skip)]
    summary: String,
}

fn report(target: &Target<'_>, row: &Stored, versions: &[HistoryVersion], shown: usize) -> CommandResult<Report> {
    let texts = versions.iter().map(|past| plain(past, false));
    let texts: Vec<Value> = texts.collect::<Result<_, _>>()?;
    let lines = versions.iter().enumerate().take(shown).map(|(index, past)| {
        let before = texts.get(index + 1);
        let changes = before.map(|before| between(before, &texts[index]));
        let summary = match &changes {
            Some(changes) => changes::summary(changes),
            None => "the first version that is kept".to_owned(),
        };
        Line {
            resource_version: past.object.metadata.resource_version.to_string(),
            seen: past.seen,
            lost: past.branch < 0,
            changed: changes.map(|changes| changes.into_iter().map(|change| change.path).collect()),
            summary,
        }
    });
    Ok(Report {
        kind: target.kind.name,
        namespace: target.namespace.to_owned(),
        name: target.name.to_owned(),
        uid: row.object.metadata.uid.to_string(),
        deleted: row.delete_time,
        evicted: row.evicted_time,
        versions: lines.collect(),
    })
}

/// A version's content, without what differs in every version.
pub(crate) fn plain(past: &HistoryVersion, managed_fields: bool) -> CommandResult<Value> {
    let object = serde_json::from_str(past.object.text()).map_err(|error| CommandError::failure(chain(&error)))?;
    Ok(without_noise(object, managed_fields))
}

fn as_table(report: &Report) -> String {
    let event = |time: &Timestamp, what: &str| vec!["-".to_owned(), time.to_string(), what.to_owned()];
    let deleted = report.deleted.iter().map(|time| event(time, "deleted"));
    let archived = report
        .evicted
        .iter()
        .map(|time| event(time, "archived: left the cluster, stays in SQL"));
    let versions = report.versions.iter().map(|line| {
        let lost = if line.lost {
            " (lost when the cluster was restored)"
        } else {
            ""
        };
        let changed = format!("{}{lost}", line.summary);
        vec![line.resource_version.clone(), line.seen.to_string(), changed]
    });
    table(&["version", "seen", "changed"], deleted.chain(archived).chain(versions))
}
