//! `kindex quarantine`: objects that the database refused, listed, shown, tried again and
//! dropped.

use kindex_maintenance::quarantine::{Retried, retry};
use kindex_maintenance::retries::{RetryBudget, with_retries};
use kindex_model::kind::{Kind, Registry};
use kindex_store::{QuarantineRecords, Quarantined};
use serde::Serialize;

use crate::cli::{DropArgs, Form, QuarantineCommand, RecordsArgs};
use crate::database::{self, Store, unanswered};
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{document, table};
use crate::{say, sides};

/// Records of a page.
const PAGE_ROWS: u32 = 500;

/// Does what was asked.
pub async fn run(registry: &Registry, command: &QuarantineCommand) -> CommandResult {
    match command {
        QuarantineCommand::List(args) => list(registry, args).await,
        QuarantineCommand::Show(args) => show(registry, args).await,
        QuarantineCommand::Retry(args) => retry_all(registry, args).await,
        QuarantineCommand::Drop(args) => drop_all(registry, args).await,
    }
}

/// A record with its kind.
struct Record {
    kind: &'static Kind,
    of: Quarantined,
}

/// One line of a report.
#[derive(Debug, Serialize)]
struct Line<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    uid: String,
    version: String,
    attempts: u64,
    first_time: String,
    last_time: String,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    retried: Option<Retried>,
}

impl Record {
    fn line(&self) -> Line<'_> {
        let Quarantined {
            namespace,
            name,
            reason,
            attempts,
            ..
        } = &self.of;
        Line {
            kind: self.kind.name,
            namespace,
            name,
            uid: self.of.uid.to_string(),
            version: self.of.res_version.to_string(),
            attempts: *attempts,
            first_time: self.of.first_time.to_string(),
            last_time: self.of.last_time.to_string(),
            reason,
            text: None,
            retried: None,
        }
    }
}

/// The records that are asked for; every uid that is named must have one.
async fn records(registry: &Registry, args: &RecordsArgs, store: &dyn QuarantineRecords) -> CommandResult<Vec<Record>> {
    let mut records = Vec::new();
    for kind in sides::cluster_kinds(registry, &args.kinds)? {
        records.extend(of_kind(kind, &args.uids, store, PAGE_ROWS).await?);
    }
    if records.is_empty() && args.uids.is_empty() {
        say::note("Nothing is in quarantine.");
    }
    for uid in &args.uids {
        if !records.iter().any(|record| *record.of.uid.0 == **uid) {
            return Err(CommandError::failure(format_args!("{uid} is not in quarantine"))
                .hint("`kindex quarantine list` shows what is"));
        }
    }
    Ok(records)
}

/// Those of a kind, with one of these uids where any is named; so many are read at once.
async fn of_kind(
    kind: &'static Kind,
    uids: &[String],
    store: &dyn QuarantineRecords,
    page_rows: u32,
) -> CommandResult<Vec<Record>> {
    let is_wanted = |record: &Quarantined| uids.is_empty() || uids.iter().any(|uid| **uid == *record.uid.0);
    let (mut records, mut after) = (Vec::new(), None);
    loop {
        let read = || store.quarantine_page(kind, after.as_ref(), page_rows);
        let page = with_retries(RetryBudget::default(), read).await;
        let page = page.map_err(|error| unanswered(&error))?;
        let Some(last) = page.last() else {
            return Ok(records);
        };
        after = Some(last.uid.clone());
        records.extend(page.into_iter().filter(is_wanted).map(|of| Record { kind, of }));
    }
}

/// The same for commands that change something: nothing is meant by silence.
async fn chosen(registry: &Registry, args: &RecordsArgs, store: &dyn QuarantineRecords) -> CommandResult<Vec<Record>> {
    if args.uids.is_empty() && !args.all {
        return Err(CommandError::usage("which objects?").hint("name their uids, or say --all"));
    }
    records(registry, args, store).await
}

async fn list(registry: &Registry, args: &RecordsArgs) -> CommandResult {
    let store = sides::store(registry, &args.sides.store)?;
    database::outlasting(&store).await?;
    let records = records(registry, args, store.as_ref()).await?;
    store.close().await;
    let lines: Vec<Line<'_>> = records.iter().map(Record::line).collect();
    say::print(render(&lines, args.output)?)?;
    Ok(())
}

fn render(lines: &[Line<'_>], form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(&lines, form);
    }
    if lines.is_empty() {
        return Ok(String::new());
    }
    let rows = lines.iter().map(|line| {
        let outcome = match &line.retried {
            None => line.reason.to_owned(),
            Some(Retried::Refused { reason }) => format!("refused again: {reason}"),
            Some(Retried::Stored) => "stored".to_owned(),
            Some(Retried::StoredAsGone) => "gone from the cluster; its last text is stored".to_owned(),
            Some(Retried::Current) => "its row holds it already".to_owned(),
            Some(Retried::Left) => {
                "its row is archived or deleted: the ingester decides at its next full list".to_owned()
            }
        };
        vec![
            line.kind.to_owned(),
            line.namespace.to_owned(),
            line.name.to_owned(),
            line.uid.clone(),
            line.attempts.to_string(),
            line.first_time.clone(),
            line.last_time.clone(),
            outcome,
        ]
    });
    let last = if lines.iter().any(|line| line.retried.is_some()) {
        "outcome"
    } else {
        "reason"
    };
    let heads = [
        "kind",
        "namespace",
        "name",
        "uid",
        "attempts",
        "first time",
        "last time",
        last,
    ];
    Ok(table(&heads, rows))
}

async fn text(store: &Store, record: &Record) -> CommandResult<String> {
    let read = || store.quarantined_text(record.kind, &record.of.uid);
    let text = with_retries(RetryBudget::default(), read).await;
    Ok(text.map_err(|error| unanswered(&error))?.unwrap_or_default())
}

/// The text alone on stdout, so that it can be piped; what is known of it on stderr.
async fn show(registry: &Registry, args: &RecordsArgs) -> CommandResult {
    if args.uids.is_empty() {
        return Err(CommandError::usage("which object?").hint("name its uid; `kindex quarantine list` shows them"));
    }
    let store = sides::store(registry, &args.sides.store)?;
    database::outlasting(&store).await?;
    let mut lines = Vec::new();
    let records = records(registry, args, store.as_ref()).await?;
    for record in &records {
        let text = Some(text(&store, record).await?);
        lines.push(Line { text, ..record.line() });
    }
    store.close().await;
    if args.output != Form::Table {
        say::print(document(&lines, args.output)?)?;
        return Ok(());
    }
    for line in &lines {
        say::note(format_args!(
            "{} {}/{}, refused {} times: {}",
            line.kind, line.namespace, line.name, line.attempts, line.reason
        ));
        let text = line.text.as_deref().unwrap_or_default();
        say::line(text)?;
    }
    Ok(())
}

async fn retry_all(registry: &Registry, args: &RecordsArgs) -> CommandResult {
    let sides = sides::open(registry, &args.sides).await?;
    let records = chosen(registry, args, sides.storage.as_ref()).await?;
    let mut lines = Vec::new();
    for record in &records {
        let retried = retry(&sides, record.kind, &record.of, RetryBudget::default()).await;
        let retried = Some(retried.map_err(|error| CommandError::failure(chain(&error)))?);
        lines.push(Line {
            retried,
            ..record.line()
        });
    }
    sides.storage.close().await;
    say::print(render(&lines, args.output)?)?;
    let still = |line: &&Line<'_>| matches!(line.retried, Some(Retried::Refused { .. } | Retried::Left));
    match lines.iter().filter(still).count() {
        0 => Ok(()),
        count => Err(CommandError::failure(format_args!(
            "{count} objects stay in quarantine"
        ))),
    }
}

async fn drop_all(registry: &Registry, args: &DropArgs) -> CommandResult {
    let store = sides::store(registry, &args.records.sides.store)?;
    database::outlasting(&store).await?;
    let records = chosen(registry, &args.records, store.as_ref()).await?;
    let lines: Vec<Line<'_>> = records.iter().map(Record::line).collect();
    say::print(render(&lines, args.records.output)?)?;
    if !args.yes && !lines.is_empty() {
        store.close().await;
        return Err(CommandError::failure("nothing was removed").hint(
            "a record holds the whole text of its object; of an object that is gone it may be the only copy. \
             Say --yes to remove it for good",
        ));
    }
    for record in &records {
        let release = || store.release_quarantine(record.kind, &record.of.uid, record.of.res_version);
        let released = with_retries(RetryBudget::default(), release).await;
        released.map_err(|error| unanswered(&error))?;
    }
    store.close().await;
    if !records.is_empty() {
        say::note(format_args!("{} records removed", records.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kindex_generated::kinds::model;
    use kindex_model::object::Object;
    use kindex_store::{Address, PoolConfig, SqliteLocation, open};

    use super::*;

    #[tokio::test]
    async fn the_records_of_all_pages_are_found() {
        let place = Address::Sqlite(SqliteLocation::Memory);
        let store = open(&place, kindex_generated::registry(), &PoolConfig::default()).expect("a database");
        store.prepare().await.expect("it is empty");
        for uid in ["u4", "u1", "u6", "u0", "u3", "u2", "u5"] {
            let text = format!(r#"{{"metadata":{{"name":"n","namespace":"d","uid":"{uid}","resourceVersion":"1"}}}}"#);
            let object = Object::parse_str(&text).expect("an object");
            let recorded = store.quarantine(&model::KIND, &object, "too long", Timestamp::UNIX_EPOCH);
            recorded.await.expect("recorded");
        }
        let found = async |uids: &[&str], page_rows| {
            let uids: Vec<String> = uids.iter().map(|uid| (*uid).to_owned()).collect();
            let records = of_kind(&model::KIND, &uids, store.as_ref(), page_rows).await;
            let records = records.expect("they are read").into_iter();
            records.map(|record| record.of.uid.to_string()).collect::<Vec<_>>()
        };
        for page_rows in [2, 1, 7, PAGE_ROWS] {
            let all = found(&[], page_rows).await;
            assert_eq!(all, ["u0", "u1", "u2", "u3", "u4", "u5", "u6"], "pages of {page_rows}");
            assert_eq!(
                found(&["u5", "u2"], page_rows).await,
                ["u2", "u5"],
                "pages of {page_rows}"
            );
        }
    }
}
