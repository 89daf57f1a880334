//! Which objects name another one by a declared field: the condition for SQL, and the same as a function of the
//! object's text, for fields that have no columns. Pure.

use kindex_model::kind::{Kind, Scope};
use kindex_model::reference::{Named, Reference};
use kindex_query::select::Select;
use serde_json::Value;

use super::tree::Field;

/// The object that is named.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Aim<'a> {
    pub(in super::super) kind: &'static Kind,
    pub(in super::super) namespace: &'a str,
    pub(in super::super) name: &'a str,
}

/// The rows of a kind that may name an object by a reference: exactly those that do where the reference has columns,
/// else all that are not deleted.
pub(in super::super) fn select(holder: &'static Kind, reference: &Reference, aim: Aim<'_>) -> Select {
    let namespace = (aim.kind.scope == Scope::Namespaced).then_some(aim.namespace);
    kindex_store::select_naming(holder, reference, aim.kind.name, namespace, aim.name)
}

/// Whether an object, in the version of its kind that has the field, names another one by a reference. Its kind has
/// been checked where a column has it.
pub(in super::super) fn names(reference: &Reference, holder: &str, aim: Aim<'_>) -> bool {
    let Ok(object) = serde_json::from_str::<Value>(holder) else {
        return false;
    };
    let field = reference.path.iter().fold(&object, |value, part| &value[*part]);
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let (namespace, name) = match reference.named {
        Named::Name => (own, field.as_str()),
        Named::Identifier => {
            let namespace = field["namespace"].as_str().filter(|namespace| !namespace.is_empty());
            (namespace.unwrap_or(own), field["name"].as_str())
        }
    };
    let is_there = aim.kind.scope == Scope::Cluster || namespace == aim.namespace;
    name == Some(aim.name) && is_there
}

/// A reference as it is shown.
pub(in super::super) fn field(reference: &Reference) -> Field {
    Field {
        reference: reference.name.to_owned(),
        path: reference.path.join("."),
        on_delete: reference.on_delete.as_str().to_owned(),
        owned: reference.owned,
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::reference::OnDelete;
    use serde_json::json;

    use super::super::super::token::tests::KIND;
    use super::*;

    const PIPELINE: Reference = Reference {
        name: "pipeline",
        targets: &[],
        kind_column: None,
        path: &["spec", "pipeline"],
        named: Named::Identifier,
        columns: &[],
        owned: false,
        on_delete: OnDelete::Cascade,
    };
    static ZONE: Kind = Kind {
        name: "Zone",
        scope: Scope::Cluster,
        ..KIND
    };

    fn holder(pipeline: &Value) -> String {
        json!({"metadata": {"name": "h", "namespace": "n"}, "spec": {"pipeline": pipeline}}).to_string()
    }

    #[test]
    fn a_field_names_an_object_of_its_namespace_unless_it_says_another() {
        let aim = |kind, namespace| Aim {
            kind,
            namespace,
            name: "a",
        };
        let by_name = Reference {
            named: Named::Name,
            ..PIPELINE
        };
        for (reference, field, kind, namespace, expected) in [
            (&PIPELINE, json!({"name": "a"}), &KIND, "n", true),
            (&PIPELINE, json!({"name": "a", "namespace": ""}), &KIND, "n", true),
            (&PIPELINE, json!({"name": "a", "namespace": "m"}), &KIND, "n", false),
            (&PIPELINE, json!({"name": "a", "namespace": "m"}), &KIND, "m", true),
            (&PIPELINE, json!({"name": "b"}), &KIND, "n", false),
            (&PIPELINE, json!("a"), &KIND, "n", false),
            (&PIPELINE, Value::Null, &KIND, "n", false),
            (&by_name, json!("a"), &KIND, "n", true),
            (&by_name, json!("a"), &KIND, "m", false),
            (&by_name, json!("a"), &ZONE, "", true),
            (&by_name, json!({"name": "a"}), &KIND, "n", false),
        ] {
            let found = names(reference, &holder(&field), aim(kind, namespace));
            assert_eq!(found, expected, "{field} {namespace}");
        }
    }

    #[test]
    fn sql_is_asked_by_the_columns_that_there_are() {
        let aim = Aim {
            kind: &KIND,
            namespace: "m",
            name: "a",
        };
        let asked = |reference: &Reference, aim| {
            let select = select(&KIND, reference, aim);
            let texts = select.equal_texts();
            texts
                .iter()
                .map(|(column, text)| format!("{column}={text}"))
                .collect::<Vec<_>>()
        };
        let both = Reference {
            columns: &["pipeline_namespace", "pipeline_name"],
            ..PIPELINE
        };
        assert_eq!(asked(&both, aim), ["pipeline_namespace=m", "pipeline_name=a"]);
        let of_a_kind = Reference {
            kind_column: Some("base_type"),
            ..both
        };
        assert_eq!(
            asked(&of_a_kind, aim),
            ["pipeline_namespace=m", "pipeline_name=a", "base_type=Run"]
        );
        let one = Reference {
            columns: &["pipeline"],
            ..PIPELINE
        };
        assert_eq!(asked(&one, aim), ["namespace=m", "pipeline=a"]);
        assert_eq!(
            asked(
                &one,
                Aim {
                    kind: &ZONE,
                    namespace: "",
                    name: "a"
                }
            ),
            ["pipeline=a"]
        );
        assert!(asked(&PIPELINE, aim).is_empty());
    }
}
