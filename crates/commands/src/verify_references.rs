//! References in `kindex verify`: both sides are compared, and other services are asked about their holders and about
//! their objects of the kinds that fields may name. One that does not answer is a note and no difference.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use kindex_api::operations::{Caller, Node, ObjectKey, Operations, Question, State};
use kindex_kube_client::Outcome;
use kindex_maintenance::references::{Class, Difference, ReferencedObject, Report, verify};
use kindex_maintenance::retries::RetryBudget;
use kindex_maintenance::sides::Sides;
use kindex_model::kind::{Kind, Registry};
use kindex_model::reference_name::ReferenceName;
use kindex_store::progress::Progress;
use serde::Serialize;
use tokio::time::sleep;

use crate::cli::VerifyArgs;
use crate::error::CommandResult;
use crate::output::{table, visible};
use crate::peers::{self, Targets};
use crate::sides;

/// Holders that are asked about at the same time.
const ASKED_AT_ONCE: usize = 8;
/// Notes that are shown to people.
const NOTES_SHOWN: usize = 100;
/// What helps against references that were left behind at another service.
const DROP_THERE: &str = "what was left behind on an object of another service is released there: \
                          `kindex references drop KIND/NAME REFERENCE --force --reason TEXT`";

/// What was compared, with what other services say.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct References {
    #[serde(flatten)]
    report: Report,
    /// Objects that have references of holders which other services have deleted.
    left_behind: Vec<String>,
    /// What is not known, and why.
    notes: Vec<String>,
}

/// Compares, and asks the other services.
pub(crate) async fn compare(
    registry: &Registry,
    args: &VerifyArgs,
    services: &[(&str, &str)],
    opened: &Sides,
    settle: Duration,
    progress: &dyn Progress,
) -> CommandResult<References> {
    let targets = Targets::of(registry, services);
    let report = verify(opened, registry, &targets, settle, RetryBudget::default(), progress).await;
    let report = report.map_err(|error| sides::stopped(&error))?;
    let unanswered = report.unanswered.iter();
    let unanswered = unanswered.map(|why| format!("{why}; references there are not compared"));
    let unlisted = report.unlisted.iter();
    let unlisted = unlisted.map(|why| format!("{why}; what was left behind there may not be found"));
    let mut references = References {
        notes: unanswered.chain(unlisted).collect(),
        report,
        left_behind: Vec::new(),
    };
    let holders = references.report.foreign.iter().map(|(name, _)| name.group());
    let unasked = peers::unasked(registry, services, holders);
    references.notes.extend(unasked);
    if !references.report.placed {
        references.notes.push(format!(
            "no object has the finalizer {}/deletion, so that nobody places the references of declared fields: they \
             are not compared with these",
            registry.platform.group
        ));
    }
    if references.report.foreign.is_empty() {
        return Ok(references);
    }
    let access = sides::answering(sides::cluster(&args.sides).await?).await?;
    let operations = sides::operations(registry, &access, &opened.storage).await?;
    let operations = operations.with_peers(peers::of_holders(registry, services));
    references.ask_about_holders(&operations, settle).await;
    Ok(references)
}

/// The holders of these references as their services describe them. One that is silent is asked nothing more.
async fn holders(
    operations: &Operations,
    foreign: &[(ReferenceName, ReferencedObject)],
) -> BTreeMap<ReferenceName, Node> {
    let names: BTreeSet<&ReferenceName> = foreign.iter().map(|(name, _)| name).collect();
    let question = &Question::without_end();
    let answers = stream::iter(names)
        .map(|name| async move { (name.clone(), operations.foreign_holder(question, name).await) })
        .buffered(ASKED_AT_ONCE);
    answers.collect().await
}

/// Whether an object has a reference now; a note where that cannot be read.
async fn has_reference(
    operations: &Operations,
    kind: &'static Kind,
    referenced: &ReferencedObject,
    name: &ReferenceName,
) -> Result<bool, String> {
    let key = ObjectKey {
        resource: kind.into(),
        namespace: &referenced.namespace,
        name: &referenced.name,
    };
    let read = operations
        .references(&Caller::default(), &key, Some(&name.to_string()))
        .await;
    match read {
        Ok(_) => Ok(true),
        Err(refusal) if refusal.outcome() == Outcome::Absent => Ok(false),
        Err(refusal) => Err(refusal.to_string()),
    }
}

/// What a holder of another service means for the object that has its reference.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    /// It is there.
    Holds,
    /// Its service calls it deleted, by this name.
    Deleted(String),
    /// Nothing is known of it, for this reason.
    Unknown(String),
}

fn judge(name: &ReferenceName, holder: &Node) -> Finding {
    if holder.uid != name.uid() {
        return Finding::Unknown(format!("its service describes {} instead", visible(&holder.uid)));
    }
    match holder.state {
        State::Live | State::Archived | State::Deleting => Finding::Holds,
        State::Deleted => Finding::Deleted(holder.label()),
        State::Unknown => {
            let why = holder.notes.first();
            Finding::Unknown(why.map_or("it is not known of whom that is", String::as_str).to_owned())
        }
    }
}

/// The kind of an object, with the group of the service if it is another one.
fn kind(difference: &Difference) -> String {
    match difference.service {
        Some(group) => format!("{}.{group}", difference.kind),
        None => difference.kind.to_owned(),
    }
}

/// Whether nothing of ours releases it any more.
fn is_left_elsewhere(difference: &Difference) -> bool {
    difference.service.is_some() && matches!(difference.class, Class::HolderMissing | Class::HolderElsewhere)
}

impl References {
    /// Adds what other services say of their holders. A holder releases its references before it ends, so that what is
    /// found is read once more.
    async fn ask_about_holders(&mut self, operations: &Operations, settle: Duration) {
        let holders = holders(operations, &self.report.foreign).await;
        let mut deleted = Vec::new();
        for (name, referenced) in std::mem::take(&mut self.report.foreign) {
            let kinds = &mut operations.registry().kinds.iter().copied();
            let kind = kinds.find(|kind| kind.name == referenced.kind && kind.group == referenced.group);
            let (Some(kind), Some(holder)) = (kind, holders.get(&name)) else {
                continue;
            };
            let target = match referenced.namespace.as_str() {
                "" => format!("{}/{}", kind.singular, referenced.name),
                namespace => format!("{}/{namespace}/{}", kind.singular, referenced.name),
            };
            match judge(&name, holder) {
                Finding::Holds => {}
                Finding::Deleted(label) => deleted.push((target, kind, referenced, name, label)),
                Finding::Unknown(why) => self.notes.push(format!("{target} has {name}: {why}")),
            }
        }
        if !deleted.is_empty() {
            sleep(settle).await;
        }
        for (target, kind, referenced, name, label) in deleted {
            match has_reference(operations, kind, &referenced, &name).await {
                Ok(true) => self.left_behind.push(format!(
                    "{target} has {name}, and its service says that {label} is deleted"
                )),
                Ok(false) => {}
                Err(why) => self.notes.push(format!("{target} has {name}: {why}")),
            }
        }
    }

    /// How many differ.
    pub(crate) fn differing(&self) -> usize {
        self.report.differences.len() + self.left_behind.len()
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let Report {
            objects,
            references,
            differences,
            unsettled,
            ..
        } = &self.report;
        let mut text = String::new();
        if !differences.is_empty() {
            let rows = differences.iter().map(|difference| {
                vec![
                    kind(difference),
                    difference.namespace.clone(),
                    difference.name.clone(),
                    difference.uid.clone(),
                    difference.class.to_string(),
                    difference.detail.clone(),
                ]
            });
            text += &table(&["kind", "namespace", "name", "uid", "difference", "detail"], rows);
            text.push('\n');
        }
        if differences.iter().any(is_left_elsewhere) {
            text += &format!("{DROP_THERE}\n");
        }
        // Another service may have said it.
        text.extend(self.left_behind.iter().map(|line| format!("{}\n", visible(line))));
        let notes = self.notes.iter().take(NOTES_SHOWN);
        text.extend(notes.map(|note| format!("note: {}\n", visible(note))));
        if let Some(more) = self.notes.len().checked_sub(NOTES_SHOWN).filter(|more| *more > 0) {
            text += &format!("note: {more} more; `--output json` has all\n");
        }
        let differing = self.differing();
        text + &format!("references: {references} on {objects} objects, {differing} differing, {unsettled} unsettled\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UID: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

    fn judged(state: State, uid: &str) -> Finding {
        let holder = json!({"kind": "Server", "group": "other.example.com", "namespace": "prod", "name": "s", "uid": uid,
            "state": state, "notes": ["nobody answers"]});
        let holder: Node = serde_json::from_value(holder).expect("a holder");
        let name = ReferenceName::new("Server", "other.example.com", UID).expect("a name");
        judge(&name, &holder)
    }

    fn found(left_behind: &[&str], notes: &[String]) -> References {
        References {
            report: Report::default(),
            left_behind: left_behind.iter().map(|line| (*line).to_owned()).collect(),
            notes: notes.to_vec(),
        }
    }

    #[test]
    fn what_another_service_says_cannot_change_the_terminal() {
        let text = found(&["a is deleted\u{1b}[2J"], &["b says \u{1b}[3J".to_owned()]).text();
        for shown in ["a is deleted\\u{1b}[2J\n", "note: b says \\u{1b}[3J\n"] {
            assert!(text.contains(shown), "{text}");
        }
    }

    /// As if thousands of references of a silent service filled the terminal.
    #[test]
    fn people_are_shown_a_hundred_notes() {
        for (count, lines) in [(99, 99), (100, 100), (101, 101), (10_000, 101)] {
            let notes: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
            let text = found(&[], &notes).text();
            assert_eq!(text.matches("note: ").count(), lines, "{text}");
            let more = format!("note: {} more; `--output json` has all", count.max(100) - 100);
            assert_eq!(text.contains(&more), count > 100, "{text}");
        }
    }

    /// As if silence, or what a service says of another object, were a difference.
    #[test]
    fn only_a_holder_that_its_service_calls_deleted_has_left_its_reference_behind() {
        assert_eq!(
            judged(State::Deleted, UID),
            Finding::Deleted("server/prod/s".to_owned())
        );
        assert_eq!(
            judged(State::Unknown, UID),
            Finding::Unknown("nobody answers".to_owned())
        );
        for state in [State::Live, State::Archived, State::Deleting] {
            assert_eq!(judged(state, UID), Finding::Holds, "{state:?}");
        }
        for uid in ["another", ""] {
            let Finding::Unknown(why) = judged(State::Deleted, uid) else {
                panic!("it is another object");
            };
            assert!(why.contains("instead"), "{why}");
        }
        assert_eq!(found(&["one"], &["two".to_owned()]).differing(), 1);
    }
}
