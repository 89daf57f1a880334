//! Which object a declared field of an object names, and as much of the object's text as says so. Looks nothing up.

use serde_json::{Error, Value};

use crate::kind::{Column, Kind, Scope};
use crate::picked::{PathSegment, picked, segments};
use crate::reference::{Named, Reference, Target};

/// The namespace of an object, in which is what its fields name without one.
const NAMESPACE: &[&str] = &["metadata", "namespace"];

/// An object that a field names: it need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedObject<'r> {
    /// Its kind.
    pub target: &'r Target,
    /// Empty for kinds of the whole cluster.
    pub namespace: String,
    /// Never empty.
    pub name: String,
}

/// Where the text of an object of a kind says which objects its fields name, as [`named`] reads it. Of the fields,
/// those whose targets wait for the object.
pub fn naming_paths(holder: &Kind) -> Vec<Vec<PathSegment>> {
    let mut paths = vec![segments(NAMESPACE)];
    for reference in holder.references.iter().filter(|reference| reference.waits()) {
        paths.extend(paths_of(reference));
        let column = column_of_kind(holder, reference);
        paths.extend(column.map(|column| segments(column.path)));
    }
    paths
}

/// The fields by which an object of a kind names those that wait for it, and its namespace: what is at the
/// [`naming_paths`] of its text. However deeply the rest of it is nested, it is passed over.
///
/// # Errors
/// As [`picked`].
pub fn naming_fields(holder: &Kind, text: &str) -> Result<Value, Error> {
    picked(text, &naming_paths(holder))
}

/// The same of one reference, whether or not its target waits.
///
/// # Errors
/// As [`picked`].
pub fn naming_field(reference: &Reference, text: &str) -> Result<Value, Error> {
    let mut paths = paths_of(reference);
    paths.push(segments(NAMESPACE));
    picked(text, &paths)
}

fn paths_of(reference: &Reference) -> Vec<Vec<PathSegment>> {
    let field = segments(reference.path);
    match reference.named {
        Named::Name => vec![field],
        Named::Identifier => {
            let part = |name| {
                field
                    .iter()
                    .copied()
                    .chain([PathSegment::Field(name)])
                    .collect::<Vec<_>>()
            };
            vec![part("namespace"), part("name")]
        }
    }
}

/// The column that says of which kind the named object is, if there are several.
fn column_of_kind(holder: &Kind, reference: &Reference) -> Option<&'static Column> {
    let wanted = reference.kind_column?;
    holder.columns.iter().find(|column| column.name == wanted)
}

/// The object that a reference of `holder` names in the fields of an object; `None` where the field is absent or empty,
/// or the kind that it says is none of the reference's. `scope` knows whether the objects of a target have namespaces.
pub fn named<'r>(
    holder: &Kind,
    reference: &'r Reference,
    object: &Value,
    scope: impl Fn(&Target) -> Scope,
) -> Option<NamedObject<'r>> {
    let target = match reference.kind_column {
        None => reference.targets.first()?,
        Some(_) => {
            let kind = at(object, column_of_kind(holder, reference)?.path)?.as_str()?;
            reference.targets.iter().find(|target| target.kind == kind)?
        }
    };
    let field = at(object, reference.path)?;
    let own = || at(object, NAMESPACE)?.as_str();
    let (namespace, name) = match reference.named {
        Named::Name => (own(), field.as_str()),
        Named::Identifier => {
            let namespace = field["namespace"].as_str().filter(|namespace| !namespace.is_empty());
            (namespace.or_else(own), field["name"].as_str())
        }
    };
    // An empty name names nothing: it must never be taken for a filter that everything passes.
    let name = name.filter(|name| !name.is_empty())?;
    Some(NamedObject {
        target,
        namespace: match scope(target) {
            Scope::Namespaced => namespace.unwrap_or_default().to_owned(),
            Scope::Cluster => String::new(),
        },
        name: name.to_owned(),
    })
}

fn at<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::ColumnType;
    use crate::reference::OnDelete;

    const NETWORK: Reference = Reference {
        name: "network",
        targets: &[Target {
            service: None,
            group: "g",
            kind: "Network",
        }],
        kind_column: None,
        path: &["spec", "network"],
        named: Named::Identifier,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Block,
    };
    static HOLDERS: Kind = Kind {
        columns: &[Column {
            name: "about_kind",
            path: &["spec", "aboutKind"],
            ty: ColumnType::Text { chars: 63 },
            own_namespace: false,
        }],
        references: &[
            NETWORK,
            Reference {
                name: "about",
                kind_column: Some("about_kind"),
                path: &["spec", "about"],
                named: Named::Name,
                ..NETWORK
            },
            Reference {
                name: "left",
                path: &["spec", "left"],
                on_delete: OnDelete::Orphan,
                ..NETWORK
            },
        ],
        ..Kind::EMPTY
    };

    #[test]
    fn the_fields_that_name_what_waits_are_read_and_nothing_else() {
        let text = json!({"kind": "Holder", "metadata": {"name": "h", "namespace": "n"}, "spec": {
            "network": {"namespace": "m", "name": "a", "other": {}}, "about": "z", "aboutKind": "Zone",
            "left": {"name": "l"}, "more": [{"network": 1}], "size": 1.5}});
        let expected = json!({"metadata": {"namespace": "n"}, "spec": {
            "network": {"namespace": "m", "name": "a"}, "about": "z", "aboutKind": "Zone"}});
        assert_eq!(naming_fields(&HOLDERS, &text.to_string()).expect("JSON"), expected);
        let left = json!({"metadata": {"namespace": "n"}, "spec": {"left": {"name": "l"}}});
        let field = naming_field(&HOLDERS.references[2], &text.to_string());
        assert_eq!(field.expect("JSON"), left);
    }

    /// As if it held nothing.
    #[test]
    fn what_is_named_is_the_same_however_deeply_the_rest_is_nested() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let of = |deep: &str| {
            let text = format!(
                r#"{{"metadata":{{"managedFields":{deep},"namespace":"n"}},"status":{{"deep":{deep}}},"spec":{{
                    "deep":{deep},"network":{{"deep":{deep},"name":"a"}},"about":"b","aboutKind":"Network"}}}}"#
            );
            let fields = naming_fields(&HOLDERS, &text).expect("JSON");
            let found = HOLDERS.references.iter().map(|reference| {
                let found = named(&HOLDERS, reference, &fields, |_| Scope::Namespaced)?;
                Some((found.namespace, found.name))
            });
            found.collect::<Vec<_>>()
        };
        let place = |name: &str| Some(("n".to_owned(), name.to_owned()));
        assert_eq!(of("1"), [place("a"), place("b"), None]);
        assert_eq!(of(&deep), of("1"));
    }
}
