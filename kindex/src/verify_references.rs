//! References in `kindex verify`: both sides are compared, and other services are asked about their holders and about
//! what fields name of theirs. One that does not answer is a note and no difference.

use std::collections::BTreeMap;
use std::time::Duration;

use kindex_api::operations::{Bounds, Caller, Node, ObjectKey, Operations, State};
use kindex_maintenance::references::{ReferencedObject, Report, verify};
use kindex_maintenance::retries::RetryBudget;
use kindex_maintenance::sides::Sides;
use kindex_model::kind::Registry;
use kindex_store::progress::Progress;
use serde::Serialize;

use crate::cli::VerifyArgs;
use crate::error::CommandResult;
use crate::other_services::{self, Targets};
use crate::output::table;
use crate::sides;

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
    let mut referenced_objects: BTreeMap<ReferencedObject, Vec<String>> = BTreeMap::new();
    for (name, referenced) in &references.report.foreign {
        referenced_objects
            .entry(referenced.clone())
            .or_default()
            .push(name.to_string());
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

async fn ask(operations: &Operations, referenced: &ReferencedObject, names: &[String], references: &mut References) {
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
        depth: 1,
        ..Bounds::default()
    };
    let shown = |reference: &str| match referenced.namespace.as_str() {
        "" => format!("{}/{} bears {reference}", kind.singular, referenced.name),
        namespace => format!("{}/{namespace}/{} bears {reference}", kind.singular, referenced.name),
    };
    let tree = match operations.holders(&Caller::default(), &key, bounds).await {
        Ok(tree) => tree,
        // It went meanwhile.
        Err(refusal) if refusal.code == 404 => return,
        Err(refusal) => return references.notes.push(refusal.to_string()),
    };
    for name in names {
        let is_it = |node: &&Node| name.ends_with(&node.uid) && node.holds;
        let Some(holder) = tree.holders.iter().find(is_it) else {
            continue;
        };
        match holder.state {
            State::Deleted => references.left_behind.push(format!(
                "{}, and its service says that {} is deleted",
                shown(name),
                holder.label()
            )),
            State::Unknown => {
                let why = holder
                    .notes
                    .first()
                    .map_or("it is not known of whom that is", String::as_str);
                references.notes.push(format!("{}: {why}", shown(name)));
            }
            State::Live | State::Archived | State::Deleting => {}
        }
    }
}

impl References {
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
        text.extend(self.left_behind.iter().map(|line| format!("{line}\n")));
        text.extend(self.notes.iter().map(|note| format!("note: {note}\n")));
        let differing = self.differing();
        text + &format!("references: {references} on {objects} objects, {differing} differing, {unsettled} unsettled\n")
    }
}
