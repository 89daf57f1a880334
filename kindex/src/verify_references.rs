//! References in `kindex verify`: both sides are compared, and other services are asked about their holders and about
//! what fields name of theirs. One that does not answer is a note and no difference.

use std::collections::BTreeMap;
use std::time::Duration;

use kindex_api::operations::{Bounds, Caller, Node, ObjectKey, Operations, State};
use kindex_maintenance::references::{ReferencedObject, Report, verify};
use kindex_maintenance::retries::RetryBudget;
use kindex_maintenance::sides::Sides;
use kindex_model::kind::{Kind, Registry};
use kindex_model::reference_name::ReferenceName;
use kindex_store::progress::Progress;
use serde::Serialize;

use crate::cli::VerifyArgs;
use crate::error::CommandResult;
use crate::other_services::{self, Targets};
use crate::output::{table, visible};
use crate::sides;

/// A question about the holders alone asks no other service.
const DEPTH: usize = 2;

/// What was compared, with what other services say.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct References {
    #[serde(flatten)]
    report: Report,
    /// Objects that bear references of holders which other services have deleted.
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
    let mut references = References {
        notes: unanswered
            .map(|why| format!("{why}; what fields name there is not compared"))
            .collect(),
        report,
        left_behind: Vec::new(),
    };
    let holders = references.report.foreign.iter().map(|(name, _)| name.group());
    let unasked = other_services::unasked(registry, services, holders);
    references.notes.extend(unasked);
    if !references.report.placed {
        references.notes.push(format!(
            "no object has the finalizer {}/deletion, so that nobody places the references of declared fields: they \
             are not compared with these",
            registry.platform.group
        ));
    }
    let mut referenced_objects: BTreeMap<ReferencedObject, Vec<ReferenceName>> = BTreeMap::new();
    for (name, referenced) in &references.report.foreign {
        referenced_objects
            .entry(referenced.clone())
            .or_default()
            .push(name.clone());
    }
    if referenced_objects.is_empty() {
        return Ok(references);
    }
    let access = sides::answering(sides::cluster(&args.sides).await?).await?;
    let operations = sides::operations(registry, &access, &opened.storage).await?;
    let operations = operations.with_peers(other_services::of_holders(registry, services));
    // Of each of these, the services are asked that have the holders.
    for (referenced, names) in referenced_objects {
        ask(&operations, &referenced, &names, &mut references).await;
    }
    Ok(references)
}

async fn ask(
    operations: &Operations,
    referenced: &ReferencedObject,
    names: &[ReferenceName],
    references: &mut References,
) {
    let mut kinds = operations.registry().kinds.iter().copied();
    let Some(kind) = kinds.find(|kind| kind.name == referenced.kind && kind.group == referenced.group) else {
        return;
    };
    let key = ObjectKey {
        resource: kind.into(),
        namespace: &referenced.namespace,
        name: &referenced.name,
    };
    let bounds = Bounds {
        depth: DEPTH,
        ..Bounds::default()
    };
    match operations.holders(&Caller::default(), &key, bounds).await {
        Ok(tree) => references.judge(kind, referenced, names, &tree.holders),
        // It went meanwhile.
        Err(refusal) if refusal.code == 404 => {}
        Err(refusal) => references.notes.push(refusal.to_string()),
    }
}

impl References {
    /// Adds what the services of these holders say of them. Of the references on the object, those that are not among
    /// its holders were released meanwhile.
    fn judge(&mut self, kind: &Kind, referenced: &ReferencedObject, names: &[ReferenceName], holders: &[Node]) {
        for name in names {
            let is_it = |node: &&Node| node.holds && node.uid == name.uid();
            let Some(holder) = holders.iter().find(is_it) else {
                continue;
            };
            let object = match referenced.namespace.as_str() {
                "" => format!("{}/{}", kind.singular, referenced.name),
                namespace => format!("{}/{namespace}/{}", kind.singular, referenced.name),
            };
            match holder.state {
                State::Deleted => self.left_behind.push(format!(
                    "{object} bears {name}, and its service says that {} is deleted",
                    holder.label()
                )),
                State::Unknown => {
                    let why = holder.notes.first();
                    let why = why.map_or("it is not known of whom that is", String::as_str);
                    self.notes.push(format!("{object} bears {name}: {why}"));
                }
                State::Live | State::Archived | State::Deleting => {}
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
                    difference.kind.to_owned(),
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
        // Another service may have said it.
        text.extend(self.left_behind.iter().map(|line| format!("{}\n", visible(line))));
        text.extend(self.notes.iter().map(|note| format!("note: {}\n", visible(note))));
        let differing = self.differing();
        text + &format!("references: {references} on {objects} objects, {differing} differing, {unsettled} unsettled\n")
    }
}

#[cfg(test)]
mod tests {
    use kindex_generated::kinds::model;
    use serde_json::json;

    use super::*;

    const UID: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

    /// What is found of a model with one reference, where this is said of its holder.
    fn judged(state: State, holds: bool, uid: &str) -> References {
        let holder = json!({"kind": "Server", "group": "other.example.com", "namespace": "prod", "name": "s", "uid": uid,
            "state": state, "holds": holds, "notes": ["nobody answers"]});
        let holder: Node = serde_json::from_value(holder).expect("a holder");
        let name = ReferenceName::new("Server", "other.example.com", UID).expect("a name");
        let referenced = ReferencedObject {
            kind: model::KIND.name,
            group: model::KIND.group,
            namespace: "default".to_owned(),
            name: "m".to_owned(),
        };
        let mut references = References {
            report: Report::default(),
            left_behind: Vec::new(),
            notes: Vec::new(),
        };
        references.judge(&model::KIND, &referenced, &[name], &[holder]);
        references
    }

    #[test]
    fn what_another_service_calls_its_holder_cannot_change_the_terminal() {
        let mut found = judged(State::Deleted, true, UID);
        found.left_behind[0].push_str("\u{1b}[2J");
        let text = found.text();
        assert!(text.contains("is deleted\\u{1b}[2J\n"), "{text}");
    }

    /// As if silence, or an object that only names the other one, were a difference.
    #[test]
    fn only_a_holder_that_its_service_calls_deleted_has_left_its_reference_behind() {
        let bears = format!("model/default/m bears server.other.example.com/{UID}");
        let deleted = judged(State::Deleted, true, UID);
        let expected = format!("{bears}, and its service says that server/prod/s is deleted");
        assert_eq!(deleted.left_behind, [expected]);
        assert_eq!(deleted.differing(), 1);
        assert!(deleted.notes.is_empty(), "{:?}", deleted.notes);
        let unknown = judged(State::Unknown, true, UID);
        assert_eq!(unknown.notes, [format!("{bears}: nobody answers")]);
        assert_eq!(unknown.differing(), 0);
        for (state, holds, uid) in [
            (State::Live, true, UID),
            (State::Archived, true, UID),
            (State::Deleting, true, UID),
            (State::Deleted, false, UID),
            (State::Deleted, true, "another"),
            (State::Deleted, true, ""),
        ] {
            let found = judged(state, holds, uid);
            assert!(
                found.left_behind.is_empty() && found.notes.is_empty(),
                "{state:?}: {found:?}"
            );
        }
    }
}
