//! `kindex restore`: creates objects in the cluster again that only SQL holds. Finds the rows
//! that are meant; how an object comes back is the runtime's business.

use std::collections::BTreeSet;

use kindex_kube_client::ObjectName;
use kindex_maintenance::restore::{Choice, Mode, Outcome, RestoreError, RestoreReport, Restorer, choose, choose_under};
use kindex_maintenance::retries::{RetryBudget, with_retries};
use kindex_model::kind::{Kind, Registry};
use kindex_model::object::{Object, Uid};
use kindex_query::{LabelSelector, Life, Stored};
use kindex_store::progress::Progress as _;
use kindex_store::{Gone, MetadataStorage};
use serde::Serialize;

use crate::cli::{Form, RestoreArgs};
use crate::database::unanswered;
use crate::error::{CommandError, CommandResult, chain};
use crate::get::{selectors, stored_as_of};
use crate::moment::{Time, VersionOrTime};
use crate::output::{document, table};
use crate::progress::Bar;
use crate::say;
use crate::show::life;
use crate::sides;
use crate::target::{Target, kind_and_name, with_history};

/// Rows of a page.
const PAGE_ROWS: u32 = 200;

/// Restores what is named and prints what became of it.
pub async fn run(registry: &Registry, args: &RestoreArgs) -> CommandResult {
    let (kind, name) = kind_and_name(registry, &args.kind, args.name.as_deref())?;
    let bulk = args.archived || args.deleted;
    if !kind.cluster {
        let error = CommandError::usage(format_args!(
            "no cluster has kind {}: nothing can be restored to one",
            kind.name
        ));
        return Err(error.hint("what it was before is in its history, if it keeps one: kindex get --at"));
    }
    if name.is_none() && args.uid.is_none() && !bulk {
        let hint = format!(
            "name it: {}/NAME; or say --archived, --deleted or both, for all of them",
            kind.singular
        );
        return Err(CommandError::usage(format_args!("which {}?", kind.plural)).hint(hint));
    }
    let selectors = selectors(&args.selector)?;
    if !bulk && (!args.selector.is_empty() || args.since.is_some()) || bulk && name.is_some() {
        return Err(CommandError::usage(
            "--selector and --since narrow --archived and --deleted, which are for a whole kind",
        )
        .hint("name either one object, or neither name nor uid"));
    }
    if args.at.is_some() {
        with_history(registry, kind)?;
    }
    let (sides, cluster) = sides::open_to_create(registry, &args.sides).await?;
    let restorer = Restorer {
        sides: &sides,
        creator: cluster.as_ref(),
        registry,
        mode: if args.dry_run { Mode::DryRun } else { Mode::Create },
        new_name: args.new_name.as_deref(),
        retry_budget: RetryBudget::default(),
    };
    let command = Command {
        restorer,
        kind,
        args,
        selectors,
        page_rows: PAGE_ROWS,
    };
    let lines = if bulk {
        command.all().await?
    } else {
        vec![command.one(name).await?]
    };
    sides.storage.close().await;
    if lines.is_empty() {
        say::note(format_args!("No {} to restore.", kind.plural));
    }
    say::print(render(&lines, args.output)?)?;
    judge(&lines)
}

struct Command<'a> {
    restorer: Restorer<'a>,
    kind: &'static Kind,
    args: &'a RestoreArgs,
    selectors: Vec<LabelSelector>,
    /// Rows that are read at once where all are meant.
    page_rows: u32,
}

/// One line of the report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    kind: &'static str,
    namespace: String,
    name: String,
    uid: String,
    was: &'static str,
    #[serde(skip)]
    life: &'static str,
    #[serde(flatten)]
    done: RestoreReport,
}

/// The state of a row in documents, whose words scripts compare.
fn was(row: &Stored) -> &'static str {
    match row.life {
        Life::Archived => "evicted",
        Life::Live | Life::Deleted => life(row),
    }
}

fn interrupted(error: &RestoreError) -> CommandError {
    CommandError::failure(chain(error)).hint("run the same command again: it completes what was begun")
}

impl Command<'_> {
    fn store(&self) -> &dyn MetadataStorage {
        self.restorer.sides.storage.as_ref()
    }

    async fn rows(&self, name: &ObjectName) -> CommandResult<Vec<Stored>> {
        let read = || self.store().rows_of_name(self.kind, &name.namespace, &name.name);
        let rows = with_retries(self.restorer.retry_budget, read).await;
        rows.map_err(|error| unanswered(&error))
    }

    /// Those of the name under which the object is to come back, where that is another.
    async fn rows_there(&self, name: &ObjectName) -> CommandResult<Option<Vec<Stored>>> {
        let Some(new_name) = self.restorer.new_name else {
            return Ok(None);
        };
        let there = ObjectName {
            namespace: name.namespace.clone(),
            name: new_name.to_owned(),
        };
        self.rows(&there).await.map(Some)
    }

    fn choose<'r>(&self, rows: &'r [Stored], uid: Option<&Uid>) -> Choice<'r> {
        choose(rows, uid, &self.restorer.sides.platform)
    }

    /// The object that is named, by name or by uid.
    async fn one(&self, name: Option<&str>) -> CommandResult<Line> {
        let uid = self.args.uid.as_deref().map(Uid::from);
        let name = self.full_name(name, uid.as_ref()).await?;
        let target = Target::new(self.kind, &name.namespace, &name.name);
        let of_time = self.past_by_time(&target).await?;
        let uid = of_time.as_ref().map(|past| past.metadata.uid.clone()).or(uid);
        let rows = self.rows(&name).await?;
        let there = self.rows_there(&name).await?;
        let there = there.as_deref().unwrap_or(&rows);
        match choose_under(&rows, uid.as_ref(), there, &self.restorer.sides.platform) {
            Choice::Absent => Err(CommandError::failure(format_args!("{target}: never stored"))
                .hint("another namespace? name it with -n")),
            Choice::Taken(by) => {
                let named = rows.iter().find(|row| uid.as_ref() == Some(&row.object.metadata.uid));
                Ok(self.taken(named.unwrap_or(by), by))
            }
            Choice::Row(row) => {
                let of_version = self.past_by_version(&target, row).await?;
                let past = of_time.as_ref().or(of_version.as_ref());
                self.restore(row, past.unwrap_or(&row.object)).await
            }
        }
    }

    /// The object that had the name at the time of `--at`, if that is a time.
    async fn past_by_time(&self, target: &Target<'_>) -> CommandResult<Option<Object>> {
        let Some(VersionOrTime::Time(time)) = self.args.at else {
            return Ok(None);
        };
        let found = self.store().version_at(self.kind, target.namespace, target.name, time);
        let found = found.await.map_err(|error| unanswered(&error))?;
        Ok(Some(stored_as_of(target, found, time)?.object))
    }

    /// The object of a row in the version of `--at`, if that is a version.
    async fn past_by_version(&self, target: &Target<'_>, row: &Stored) -> CommandResult<Option<Object>> {
        let Some(VersionOrTime::Version(version)) = self.args.at else {
            return Ok(None);
        };
        let kept = self.store().version(self.kind, &row.object.metadata.uid, version).await;
        let kept = kept.map_err(|error| unanswered(&error))?.map(|past| past.object);
        let current = Some(&row.object).filter(|object| object.metadata.resource_version == version);
        let past = kept.or_else(|| current.cloned());
        past.map(Some).ok_or_else(|| {
            CommandError::failure(format_args!("{target}: version {version} is not kept"))
                .hint("`kindex history` lists the versions; --uid chooses an older object of that name")
        })
    }

    async fn full_name(&self, name: Option<&str>, uid: Option<&Uid>) -> CommandResult<ObjectName> {
        match (name, uid) {
            (Some(name), _) => {
                let namespace = self.args.namespace.as_deref().unwrap_or("default");
                let Target { namespace, name, .. } = Target::new(self.kind, namespace, name);
                Ok(ObjectName {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                })
            }
            (None, Some(uid)) => {
                let found = with_retries(self.restorer.retry_budget, || self.store().get_by_id(self.kind, uid)).await;
                let found = found.map_err(|error| unanswered(&error))?;
                found.map(|row| ObjectName::of(&row.object)).ok_or_else(|| {
                    CommandError::failure(format_args!("{} with uid {uid}: never stored", self.kind.name))
                })
            }
            (None, None) => unreachable!("the command line names one or the other"),
        }
    }

    /// Every row that the flags mean, name by name.
    async fn all(&self) -> CommandResult<Vec<Line>> {
        let gone = Gone {
            deleted: self.args.deleted,
            archived: self.args.archived,
            namespace: self.args.namespace.clone(),
            since: self.args.since.map(|Time(time)| time),
            ..Gone::default()
        };
        let bar = Bar::new();
        bar.begin(self.kind.name, None);
        let (mut lines, mut seen, mut after) = (Vec::new(), BTreeSet::new(), None);
        loop {
            let read = || self.store().gone_rows(self.kind, &gone, after, self.page_rows);
            let page = with_retries(self.restorer.retry_budget, read).await;
            let page = page.map_err(|error| unanswered(&error))?;
            let Some(last) = page.last() else { break };
            after = Some(last.arrival);
            for found in page {
                bar.advance(1);
                let name = ObjectName {
                    namespace: found.namespace,
                    name: found.name,
                };
                if seen.contains(&name) {
                    continue;
                }
                let rows = self.rows(&name).await?;
                if let Some(line) = self.newest(&rows, &found.uid).await? {
                    lines.push(line);
                    seen.insert(name);
                }
            }
        }
        bar.end();
        lines.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        Ok(lines)
    }

    /// Restores a row where it is the one of its name that comes back, and the selectors match its labels.
    async fn newest(&self, rows: &[Stored], uid: &Uid) -> CommandResult<Option<Line>> {
        let Some(row) = rows.iter().find(|row| row.life != Life::Live) else {
            return Ok(None);
        };
        let metadata = &row.object.metadata;
        let selected = self.selectors.iter().all(|selector| {
            let value_of = |key: &str| metadata.labels.get(key).map(String::as_str);
            selector.matches(value_of)
        });
        if metadata.uid != *uid || !selected {
            return Ok(None);
        }
        match self.choose(rows, None) {
            Choice::Absent => Ok(None),
            Choice::Taken(by) => Ok(Some(self.taken(row, by))),
            Choice::Row(row) => self.restore(row, &row.object).await.map(Some),
        }
    }

    async fn restore(&self, row: &Stored, text: &Object) -> CommandResult<Line> {
        let done = self.restorer.restore(self.kind, text).await;
        Ok(self.line(row, done.map_err(|error| interrupted(&error))?))
    }

    fn taken(&self, row: &Stored, by: &Stored) -> Line {
        let by_uid = by.object.metadata.uid.to_string();
        let outcome = Outcome::Taken { by_uid };
        let owners_left_out = Vec::new();
        self.line(
            row,
            RestoreReport {
                outcome,
                owners_left_out,
            },
        )
    }

    fn line(&self, row: &Stored, done: RestoreReport) -> Line {
        let metadata = &row.object.metadata;
        Line {
            kind: self.kind.name,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.to_string(),
            was: was(row),
            life: life(row),
            done,
        }
    }
}

fn render(lines: &[Line], form: Form) -> CommandResult<String> {
    if form != Form::Table {
        return document(&lines, form);
    }
    if lines.is_empty() {
        return Ok(String::new());
    }
    let rows = lines.iter().map(|line| {
        let mut outcome = match &line.done.outcome {
            Outcome::Restored { .. } => "restored".to_owned(),
            Outcome::AlreadyRestored { .. } => "already restored".to_owned(),
            Outcome::WouldRestore => "would be restored".to_owned(),
            Outcome::Taken { by_uid } if *by_uid == line.uid => "it is in the cluster".to_owned(),
            Outcome::Taken { by_uid } => format!("the name is taken by {by_uid}"),
            Outcome::WithoutStatus { reason, .. } => format!("restored without its status: {reason}"),
            Outcome::Refused { reason } => format!("refused: {reason}"),
        };
        for left_out in &line.done.owners_left_out {
            outcome += &format!("; without its owner {}, which is {}", left_out.owner, left_out.reason);
        }
        let new_uid = line.done.outcome.new_uid().unwrap_or("-");
        [
            line.kind,
            &line.namespace,
            &line.name,
            &line.uid,
            line.life,
            new_uid,
            &outcome,
        ]
        .map(str::to_owned)
        .to_vec()
    });
    Ok(table(
        &["kind", "namespace", "name", "uid", "was", "new uid", "outcome"],
        rows,
    ))
}

fn judge(lines: &[Line]) -> CommandResult {
    match lines.iter().filter(|line| !line.done.outcome.is_good()).count() {
        0 => Ok(()),
        bad => Err(
            CommandError::failure(format_args!("{bad} of {} objects were not restored completely", lines.len()))
                .hint("the last column has each reason; where the name is taken, --as NEW-NAME brings one object back under another"),
        ),
    }
}

#[cfg(test)]
mod tests;
