//! `kindex why`: what an object waits for, down to what nothing holds. What is known of it comes from the operations of
//! the API server, which need not run for that. While the database is away, that is what the cluster and other services
//! know.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kindex_api::operations::{Bounds, Caller, Node, ObjectKey, State};
use kindex_model::kind::{Registry, Scope};

use crate::cli::{Form, WhyArgs, WhyForm};
use crate::error::{CommandError, CommandResult, chain};
use crate::last_event::{self, LastEvent};
use crate::target::{check_namespace, kind_and_name};
use crate::{database, output, peers, say, service_flag, sides};

/// Prints the tree; a failure where a part of it is missing.
pub async fn run(registry: &Registry, args: &WhyArgs) -> CommandResult {
    let (kind, name) = kind_and_name(registry, &args.kind, args.name.as_deref())?;
    let Some(name) = name else {
        return Err(CommandError::usage("which object?").hint("say KIND/NAME"));
    };
    if kind.scope == Scope::Namespaced {
        check_namespace("--namespace", &args.namespace)?;
    }
    let services = service_flag::addresses(registry, &args.services)?;
    let peers = peers::of_holders(registry, &services);
    let store = sides::store(registry, &args.sides.store)?;
    let away = match database::ask(&store, kind).await {
        Ok(()) => None,
        // No cluster knows an object of a SQL-only kind.
        Err(error) if error.is_outage() && kind.cluster => Some(error),
        Err(error) => return Err(database::unanswered(&error)),
    };
    let access = match (sides::answering(sides::cluster(&args.sides).await?).await, &away) {
        (Err(_), Some(error)) => return Err(database::unanswered(error)),
        (access, _) => access?,
    };
    let client = access.client.clone();
    let operations = match &away {
        None => sides::operations(registry, &access, &store).await?,
        Some(error) => sides::operations_of_cluster(registry, &access, &chain(error))?,
    };
    let operations = operations.with_peers(peers);
    let key = ObjectKey {
        resource: kind.into(),
        namespace: match kind.scope {
            Scope::Namespaced => &args.namespace,
            Scope::Cluster => "",
        },
        name,
    };
    let bounds = Bounds {
        depth: args.depth.into(),
        ..Bounds::default()
    };
    let tree = operations.holders(&Caller::default(), &key, bounds).await;
    drop(operations);
    store.close().await;
    let mut tree = tree.map_err(|refusal| match (refusal.outcome().is_not_found(), &away) {
        // It may be archived.
        (true, Some(error)) => database::unanswered(error),
        (true, None) => CommandError::failure(refusal).hint("another namespace? name it with -n"),
        (false, _) => CommandError::failure(refusal),
    })?;
    if let Some(error) = &away {
        note_missing(&mut tree, &chain(error));
    }
    let events = last_event::of_roots(&client, &tree).await;
    say::print(render(&tree, &events, args.output, Timestamp::now())?)?;
    for note in peers::unasked(registry, &services, groups(&tree).into_iter()) {
        say::note(format_args!("note: {note}"));
    }
    match tree.is_whole() {
        true => Ok(()),
        false => Err(CommandError::failure("a part of it is missing: see the notes")),
    }
}

/// Says what is not known without the database: holders of this service are found there, live ones too.
fn note_missing(tree: &mut Node, why: &str) {
    note_unknown(tree);
    tree.notes.push(format!(
        "what is archived is unknown, and so is what names the object by a field: {why}"
    ));
}

/// A holder that was not looked up has not left its reference behind.
fn note_unknown(node: &mut Node) {
    if node.service.is_empty() && node.state == State::Unknown {
        node.notes.push("the database does not answer".to_owned());
    }
    node.holders.iter_mut().for_each(note_unknown);
}

/// Those of all objects of other services in the tree. No service is asked about objects of this program.
fn groups(tree: &Node) -> BTreeSet<&str> {
    let below = tree.holders.iter().flat_map(groups);
    let is_foreign = !tree.service.is_empty();
    below.chain(is_foreign.then_some(tree.group.as_str())).collect()
}

fn render(tree: &Node, events: &BTreeMap<String, LastEvent>, form: WhyForm, now: Timestamp) -> CommandResult<String> {
    match form {
        WhyForm::Json => output::document(tree, Form::Json),
        WhyForm::Yaml => output::document(tree, Form::Yaml),
        WhyForm::Table => Ok(table(tree, now)),
        WhyForm::Tree => Ok(as_tree(tree, events, now)),
    }
}

fn table(tree: &Node, now: Timestamp) -> String {
    let mut rows = Vec::new();
    add_rows(tree, "", reasons(tree), now, &mut rows);
    let heads = ["object", "state", "age", "service", "holds", "by", "why"];
    output::table(&heads, rows)
}

/// What is said of each object of a tree: why it is still there, or, where nobody has deleted the tree's object, what
/// would become of it then.
fn reasons(tree: &Node) -> fn(&Node) -> String {
    match tree.state {
        State::Live | State::Archived => Node::describe_consequence,
        State::Deleting | State::Deleted | State::Unknown => Node::reason,
    }
}

fn add_rows(node: &Node, above: &str, why: fn(&Node) -> String, now: Timestamp, rows: &mut Vec<Vec<String>>) {
    let or_none = |text: String| if text.is_empty() { "<none>".to_owned() } else { text };
    rows.push(vec![
        node.label(),
        node.state.as_str().to_owned(),
        output::age(node.since, now),
        or_none(node.service.clone()),
        or_none(above.to_owned()),
        or_none(node.how()),
        why(node),
    ]);
    for holder in &node.holders {
        add_rows(holder, &node.label(), why, now, rows);
    }
}

fn as_tree(tree: &Node, events: &BTreeMap<String, LastEvent>, now: Timestamp) -> String {
    let last_event = |node: &Node| {
        let event = events.get(&node.uid);
        event.map_or_else(String::new, |event| {
            let (age, message) = (output::age(event.at, now), output::visible(&event.message));
            format!("    {age} ago: {message}\n")
        })
    };
    let mut text = format!("{}\n", line(tree, now));
    branches(tree, "", now, &mut text);
    text.push_str(&phases(tree, now));
    if !tree.holders.is_empty() {
        let (head, last) = match tree.state {
            State::Live | State::Archived => (
                "Nobody has deleted it. If somebody does, these go first:",
                tree.first_to_go(),
            ),
            State::Deleting | State::Deleted | State::Unknown => ("In the end it waits for:", tree.roots()),
        };
        text.push_str(&format!("\n{head}\n"));
        let why = reasons(tree);
        for node in last {
            text.push_str(&format!("  {}: {}\n", output::visible(&node.label()), why(node)));
            text.push_str(&last_event(node));
        }
    } else {
        let nothing = match tree.notes.is_empty() {
            true => "Nothing refers to it",
            false => "Nothing is known to refer to it",
        };
        text.push_str(&format!("\n{nothing}: {}\n", tree.reason()));
        text.push_str(&last_event(tree));
    }
    text
}

/// The phases that the deletion of the tree's object has entered. Those of the others are in JSON and YAML.
fn phases(tree: &Node, now: Timestamp) -> String {
    let mut text = match tree.phases.is_empty() {
        true => String::new(),
        false => "\nIts deletion so far:\n".to_owned(),
    };
    for phase in &tree.phases {
        let age = output::age(Some(phase.last_transition_time), now);
        let [name, reason, message] = [&phase.name, &phase.reason, &phase.message].map(|said| output::visible(said));
        text.push_str(&format!("  {name} {age} ago: {reason}, {message}\n"));
    }
    text
}

fn branches(node: &Node, indent: &str, now: Timestamp, text: &mut String) {
    let notes_below = if node.holders.is_empty() { "    " } else { "│   " };
    for note in &node.notes {
        text.push_str(&format!("{indent}{notes_below}note: {}\n", output::visible(note)));
    }
    for (at, holder) in node.holders.iter().enumerate() {
        let (branch, below) = if at + 1 == node.holders.len() {
            ("└── ", "    ")
        } else {
            ("├── ", "│   ")
        };
        text.push_str(&format!("{indent}{branch}{}\n", line(holder, now)));
        branches(holder, &format!("{indent}{below}"), now, text);
    }
}

/// `cluster/prod/b  Deleting 5m  of compute  (spec.network: cascade, reference)`.
fn line(node: &Node, now: Timestamp) -> String {
    let mut parts = vec![output::visible(&node.label()).into_owned()];
    let age = node.since.map(|since| format!(" {}", output::age(Some(since), now)));
    parts.push(format!("{}{}", node.state.as_str(), age.unwrap_or_default()));
    if !node.service.is_empty() {
        parts.push(format!("of {}", node.service));
    }
    let how = node.how();
    if !how.is_empty() {
        // Another service may have said it.
        parts.push(format!("({})", output::visible(&how)));
    }
    if !node.cycle.is_empty() {
        parts.push(format!("cycle: {}", node.cycle.join(" -> ")));
    }
    if node.repeated {
        parts.push("…".to_owned());
    }
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-24T12:00:00Z";

    fn tree() -> Node {
        serde_json::from_value(serde_json::json!({
            "kind": "Network", "group": "g", "name": "n", "namespace": "prod", "uid": "1", "state": "Deleting",
            "since": "2026-11-24T11:55:00Z",
            "holders": [
                {"kind": "Cluster", "group": "h", "uid": "2", "service": "compute", "state": "Unknown", "holds": true,
                    "notes": ["the service compute does not say: refused"]},
                {"kind": "Job", "group": "g", "name": "j", "uid": "3", "state": "Archived", "holds": true,
                    "since": "2026-11-21T12:00:00Z",
                    "fields": [{"reference": "network", "path": "spec.network", "onDelete": "block"}]},
            ],
        }))
        .expect("a tree")
    }

    #[test]
    fn the_tree_ends_with_what_the_object_waits_for() {
        let now = NOW.parse().expect("a time");
        assert_eq!(
            as_tree(&tree(), &BTreeMap::new(), now),
            "\
network/prod/n  Deleting 5m
├── cluster.h/2  Unknown  of compute  (reference)
│       note: the service compute does not say: refused
└── job/j  Archived 3d  (spec.network: block, reference)

In the end it waits for:
  cluster.h/2: nothing more is known of it
  job/j: nobody has deleted it
"
        );
        assert!(!tree().is_whole());
    }

    #[test]
    fn the_phases_of_a_deletion_are_below_the_tree_in_their_order() {
        let now = NOW.parse().expect("a time");
        let draining = Node {
            phases: serde_json::from_value(serde_json::json!([
                {"type": "Deleting", "status": "True", "reason": "InUse", "message": "others hold or name it",
                    "lastTransitionTime": "2026-11-24T11:55:00Z"},
                {"type": "Draining", "status": "True", "reason": "NotInUse", "message": "\u{1b}[2J",
                    "lastTransitionTime": "2026-11-24T11:58:00Z"},
            ]))
            .expect("phases"),
            holders: Vec::new(),
            ..tree()
        };
        assert_eq!(
            as_tree(&draining, &BTreeMap::new(), now),
            "\
network/prod/n  Deleting 5m

Its deletion so far:
  Deleting 5m ago: InUse, others hold or name it
  Draining 2m ago: NotInUse, \\u{1b}[2J

Nothing refers to it: is being deleted
"
        );
    }

    /// As if its deletion had begun, and did not go on.
    #[test]
    fn what_nobody_has_deleted_waits_for_nothing() {
        let (now, mut live) = (NOW.parse().expect("a time"), tree());
        live.state = State::Live;
        live.holders[1].fields[0].on_delete = "cascade".to_owned();
        let text = as_tree(&live, &BTreeMap::new(), now);
        let expected = "\nNobody has deleted it. If somebody does, these go first:\n  \
                        cluster.h/2: nothing more is known of it\n  job/j: is deleted along with what it names\n";
        assert!(text.ends_with(expected), "{text}");
        live.holders[1].fields[0].on_delete = "block".to_owned();
        let text = as_tree(&live, &BTreeMap::new(), now);
        assert!(text.ends_with("\n  job/j: somebody has to delete it\n"), "{text}");
        let text = table(&live, now);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(lines[1].ends_with("   nobody has deleted it"), "{text}");
        assert!(lines[3].ends_with("   somebody has to delete it"), "{text}");
    }

    #[test]
    fn what_another_service_says_of_its_fields_cannot_change_the_terminal() {
        let holder: Node = serde_json::from_value(serde_json::json!({
            "kind": "Cluster", "group": "h", "name": "c", "uid": "2", "service": "compute", "state": "Live",
            "fields": [{"reference": "network", "path": "spec.\u{1b}[2J", "onDelete": "block"}],
        }))
        .expect("a holder");
        let text = line(&holder, NOW.parse().expect("a time"));
        assert!(text.ends_with("(spec.\\u{1b}[2J: block)"), "{text}");
    }

    /// As if the last one were all that is to be deleted.
    #[test]
    fn of_what_nobody_has_deleted_the_holder_that_somebody_has_to_delete_is_named() {
        let mut live = tree();
        live.state = State::Live;
        live.holders.remove(0);
        let below = live.holders[0].clone();
        live.holders[0].holders = vec![Node {
            name: "k".to_owned(),
            uid: "4".to_owned(),
            ..below
        }];
        live.holders[0].holders[0].fields[0].on_delete = "cascade".to_owned();
        let text = as_tree(&live, &BTreeMap::new(), NOW.parse().expect("a time"));
        assert!(
            text.ends_with("If somebody does, these go first:\n  job/j: somebody has to delete it\n"),
            "{text}"
        );
    }

    #[test]
    fn a_service_with_an_object_anywhere_in_the_tree_is_asked_and_no_other() {
        let above = Node {
            group: "i".to_owned(),
            service: "identity".to_owned(),
            holders: vec![tree()],
            ..tree()
        };
        assert_eq!(Vec::from_iter(groups(&above)), ["h", "i"], "g is of this program");
    }

    #[test]
    fn what_was_reported_of_an_object_last_is_below_it() {
        let (now, at) = (NOW.parse().expect("a time"), "2026-11-24T11:58:00Z".parse().ok());
        let message = "waits for a machine".to_owned();
        let events = BTreeMap::from([("1".to_owned(), LastEvent { at, message })]);
        let alone = Node {
            holders: Vec::new(),
            ..tree()
        };
        let said = "\nNothing refers to it: is being deleted\n    2m ago: waits for a machine\n";
        let text = as_tree(&alone, &events, now);
        assert!(text.ends_with(said), "{text}");
        assert!(
            !as_tree(&tree(), &events, now).contains("ago"),
            "its holders are what it waits for"
        );
    }

    /// As if its reference were left over, or nothing referred to the object.
    #[test]
    fn a_holder_that_the_database_was_not_asked_about_is_unknown() {
        let now = NOW.parse().expect("a time");
        let mut away = tree();
        away.holders.remove(0);
        away.holders[0] = Node {
            name: String::new(),
            state: State::Unknown,
            since: None,
            fields: Vec::new(),
            ..away.holders[0].clone()
        };
        note_missing(&mut away, "connection refused");
        assert_eq!(
            as_tree(&away, &BTreeMap::new(), now),
            "\
network/prod/n  Deleting 5m
│   note: what is archived is unknown, and so is what names the object by a field: connection refused
└── job.g/3  Unknown  (reference)
        note: the database does not answer

In the end it waits for:
  job.g/3: nothing more is known of it
"
        );
        away.holders.clear();
        let text = as_tree(&away, &BTreeMap::new(), now);
        let end = "\nNothing is known to refer to it: is being deleted\n";
        assert!(text.ends_with(end) && !away.is_whole(), "{text}");
    }

    #[test]
    fn the_table_has_a_line_for_each_object() {
        let text = table(&tree(), NOW.parse().expect("a time"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].starts_with("network/prod/n   Deleting   5m"), "{text}");
        assert!(
            lines[3].contains("network/prod/n   spec.network: block, reference   nobody has deleted it"),
            "{text}"
        );
    }
}
