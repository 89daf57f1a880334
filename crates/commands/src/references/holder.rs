//! What there is to say of the holder of a reference: before a release, what to do instead, and after it, that a field
//! names the object as before. Asks nothing.

use kindex_api::operations::{ListedReference, Node, State, Target};

const FORCE: &str = "with --force the reference is released, whatever the holder does";

/// What to do about a reference that nobody has said to release with force.
pub(super) fn instead(held: &ListedReference) -> String {
    let holder = held.holder.as_ref();
    match holder.map(|holder| (holder, holder.state)) {
        Some((holder, State::Deleting)) => {
            let holder = typed(&held.kind, &holder.namespace, &holder.name);
            format!("the holder is being deleted: `kindex why {holder}` says what it waits for; {FORCE}")
        }
        Some((_, State::Deleted)) => "the holder is gone: --force releases what it left behind".to_owned(),
        Some((_, State::Live | State::Archived)) => format!("delete the holder instead; {FORCE}"),
        Some((_, State::Unknown)) | None => format!("delete the holder instead, if it is still there; {FORCE}"),
    }
}

/// That fields of a holder name an object although its reference is released, and what to do about it. Nothing where
/// none does.
pub(super) fn still_names(holder: &Node, object: &Target) -> Option<String> {
    let group = object.api_version.split('/').next();
    let fields = holder.targets.iter().filter(|naming| {
        let is_kind = Some(naming.group.as_str()) == group && naming.kind == object.kind;
        is_kind && naming.namespace == object.namespace && naming.name == object.name
    });
    let paths: Vec<&str> = fields.map(|naming| naming.field.path.as_str()).collect();
    if paths.is_empty() {
        return None;
    }
    let named = format!("{}/{}", object.kind.to_ascii_lowercase(), object.name);
    let this = typed(&holder.kind, &holder.namespace, &holder.name);
    let (then, hint) = match (holder.state, object.state) {
        (State::Deleting, _) => (
            "that stays until the holder is gone".to_owned(),
            format!("`kindex why {this}` says what the holder waits for"),
        ),
        (State::Live, Some(State::Deleting)) => (
            "that waits for the holder all the same".to_owned(),
            "delete the holder, or clear the field in the cluster".to_owned(),
        ),
        (_, Some(State::Deleting)) => (
            "that waits for the holder all the same".to_owned(),
            "delete the holder".to_owned(),
        ),
        (state, _) => {
            let then = match state {
                State::Live => "`kindex deletion` sets the reference again",
                State::Archived | State::Deleting | State::Deleted | State::Unknown => {
                    "its deletion waits for the holder all the same"
                }
            };
            let other = format!("{}/OTHER", object.kind.to_ascii_lowercase());
            let hint = format!("`kindex move {this} --to {other}` lets it name another object; or clear the field");
            (then.to_owned(), hint)
        }
    };
    let (holder, state) = (holder.label(), holder.state.as_str());
    let names = if paths.len() == 1 { "names" } else { "name" };
    Some(format!(
        "note: {holder} is {state}, and its {} still {names} {named}: {then}\n  hint: {hint}",
        paths.join(" and ")
    ))
}

/// An object as it is typed behind a command.
fn typed(kind: &str, namespace: &str, name: &str) -> String {
    let object = format!("{}/{name}", kind.to_ascii_lowercase());
    match namespace {
        "" | "default" => object,
        other => format!("{object} -n {other}"),
    }
}

#[cfg(test)]
mod tests {
    use kindex_api::operations::Holder;

    use super::*;

    fn held(state: State) -> ListedReference {
        ListedReference {
            name: "run.g.example/u".to_owned(),
            kind: "Run".to_owned(),
            group: "g.example".to_owned(),
            uid: "u".to_owned(),
            holder: Some(Holder {
                namespace: "prod".to_owned(),
                name: "one".to_owned(),
                state,
            }),
        }
    }

    /// As if the holder could be deleted once more.
    #[test]
    fn what_to_do_instead_depends_on_how_far_the_holder_is() {
        let hint = instead(&held(State::Deleting));
        assert!(
            hint.contains("`kindex why run/one -n prod` says what it waits for"),
            "{hint}"
        );
        for (state, begin) in [
            (State::Live, "delete the holder instead; with --force"),
            (State::Archived, "delete the holder instead; with --force"),
            (State::Deleted, "the holder is gone: --force"),
            (State::Unknown, "delete the holder instead, if it is still there"),
        ] {
            let hint = instead(&held(state));
            assert!(hint.starts_with(begin), "{hint}");
        }
    }

    fn holder(state: &str) -> Node {
        serde_json::from_value(serde_json::json!({
            "kind": "Run", "group": "g.example", "namespace": "prod", "name": "one", "uid": "u", "state": state,
            "targets": [
                {"reference": "other", "path": "spec.other", "onDelete": "block", "group": "g.example",
                    "kind": "Pipeline", "namespace": "prod", "name": "p4"},
                {"reference": "pipeline", "path": "spec.pipeline", "onDelete": "block", "group": "g.example",
                    "kind": "Pipeline", "namespace": "prod", "name": "p3"},
            ],
        }))
        .expect("a holder")
    }

    fn pipeline(name: &str, state: State) -> Target {
        Target {
            api_version: "g.example/v1".to_owned(),
            kind: "Pipeline".to_owned(),
            namespace: "prod".to_owned(),
            name: name.to_owned(),
            uid: "t".to_owned(),
            state: Some(state),
            archived: false,
            resource_version: String::new(),
            released_reference: String::new(),
            released_references: Vec::new(),
        }
    }

    #[test]
    fn a_field_that_names_the_object_as_before_is_said_with_what_comes_of_it() {
        let live = still_names(&holder("Live"), &pipeline("p3", State::Live));
        assert_eq!(
            live.as_deref(),
            Some(
                "note: run/prod/one is Live, and its spec.pipeline still names pipeline/p3: `kindex deletion` sets the \
                 reference again\n  hint: `kindex move run/one -n prod --to pipeline/OTHER` lets it name another \
                 object; or clear the field"
            )
        );
        for (holder_is, object_is, expected) in [
            (
                "Live",
                State::Deleting,
                "that waits for the holder all the same\n  hint: delete the holder, or",
            ),
            (
                "Archived",
                State::Deleting,
                "that waits for the holder all the same\n  hint: delete the holder",
            ),
            (
                "Archived",
                State::Live,
                "its deletion waits for the holder all the same\n  hint: `kindex move",
            ),
            (
                "Deleting",
                State::Deleting,
                "stays until the holder is gone\n  hint: `kindex why run/one -n prod`",
            ),
        ] {
            let said = still_names(&holder(holder_is), &pipeline("p3", object_is));
            assert!(said.as_ref().is_some_and(|said| said.contains(expected)), "{said:?}");
        }
        assert_eq!(still_names(&holder("Live"), &pipeline("p5", State::Live)), None);
    }
}
