//! As much of an object's text as says which objects its fields name. Everything else is passed over, so that a large
//! object takes no memory beside its text. Pure.

use std::fmt;

use kindex_model::kind::Kind;
use kindex_model::reference::{Named, Reference};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The fields by which an object of a kind names those that outlive it, and its metadata without their contents. Null
/// of a text that is no object.
pub(in super::super) fn picked(kind: &Kind, text: &str) -> Value {
    let paths = paths(kind);
    let pick = Pick {
        paths: paths.iter().map(Vec::as_slice).collect(),
    };
    let mut text = serde_json::Deserializer::from_str(text);
    pick.deserialize(&mut text).unwrap_or_default()
}

fn paths(kind: &Kind) -> Vec<Vec<&'static str>> {
    // There, the namespace is put that the path of a request says.
    let mut paths = vec![vec!["metadata", "namespace"]];
    for reference in kind.references.iter().filter(|reference| reference.waits()) {
        match reference.named {
            Named::Name => paths.push(reference.path.to_vec()),
            Named::Identifier => {
                let at = |part: &'static str| reference.path.iter().copied().chain([part]).collect::<Vec<_>>();
                paths.extend(["namespace", "name"].map(at));
            }
        }
        paths.extend(path_of_kind(kind, reference).map(<[_]>::to_vec));
    }
    paths
}

/// Where the kind of the named object is, if there are several.
fn path_of_kind(kind: &Kind, reference: &Reference) -> Option<&'static [&'static str]> {
    let wanted = reference.kind_column?;
    let column = kind.columns.iter().find(|column| column.name == wanted)?;
    Some(column.path)
}

/// What is read of a value: texts at the end of these paths.
struct Pick<'p> {
    paths: Vec<&'p [&'static str]>,
}

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        match self.paths.iter().any(|path| path.is_empty()) {
            true => Ok(Value::from(text)),
            false => Ok(Value::Null),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    /// Of a field that is there twice, the last one counts, as for the cluster.
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut picked = Map::new();
        while let Some(field) = fields.next_key::<String>()? {
            let parts = self.paths.iter().filter_map(|path| path.split_first());
            let below = parts.filter(|(first, _)| **first == field);
            let paths: Vec<_> = below.map(|(_, rest)| rest).collect();
            if paths.is_empty() {
                fields.next_value::<IgnoredAny>()?;
            } else {
                picked.insert(field, fields.next_value_seed(Pick { paths })?);
            }
        }
        Ok(Value::Object(picked))
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;
    use kindex_model::kind::{Column, ColumnType};
    use kindex_model::reference::OnDelete;
    use serde_json::json;

    use super::*;
    use crate::operations::token::tests::KIND;

    const NETWORK: Reference = Reference {
        name: "network",
        targets: &[],
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
        ..KIND
    };

    #[test]
    fn what_the_fields_name_is_read_and_nothing_else() {
        let text = r#"{"kind": "Holder", "metadata": {"name": "h", "namespace": "n"}, "spec": {
            "network": {"name": "old"}, "more": [{"network": 1}], "size": 1.5, "left": {"name": "l"},
            "network": {"namespace": "m", "name": "a\n", "other": {}}, "about": "z", "aboutKind": "Zone"}}"#;
        let expected = json!({"metadata": {"namespace": "n"}, "spec": {
            "network": {"namespace": "m", "name": "a\n"}, "about": "z", "aboutKind": "Zone"}});
        assert_eq!(picked(&HOLDERS, text), expected);
        let other = r#"{"metadata": {}, "spec": {"network": "a", "about": {"name": "z"}, "aboutKind": null}}"#;
        let nothing = json!({"network": null, "about": {}, "aboutKind": null});
        assert_eq!(picked(&HOLDERS, other), json!({"metadata": {}, "spec": nothing}));
        for text in ["", "[]", "1", "{", r#"{"spec": {"network": {"name": "#] {
            assert_eq!(picked(&HOLDERS, text), Value::Null, "{text}");
        }
    }

    /// As a value, such a text takes about thirty times its length.
    #[test]
    fn a_large_object_takes_no_memory_beside_its_text() {
        let lists = "[[]],".repeat(100_000);
        let spec = format!(r#"{{"more": [{lists} 0], "network": [{lists} 0], "about": "z"}}"#);
        let text = format!(r#"{{"metadata": {{"annotations": {{"a": [{lists} 0]}}}}, "spec": {spec}}}"#);
        let taken = measure(|| {
            assert_eq!(picked(&HOLDERS, &text)["spec"]["about"], "z");
        });
        assert!(taken.bytes_max < 16 * 1024, "{} bytes", taken.bytes_max);
    }
}
