//! A field of one version in the kind's own, for who looks objects up by it.

use kindex_model::kind::{FieldMap, Kind, MapRule};

/// The path in the kind's own version of what `version` has at the path `field`, such as `spec.method`; `None` where
/// the values are not the same in both.
pub fn own_field(kind: &Kind, version: &str, field: &str) -> Option<String> {
    if version == kind.version {
        return Some(field.to_owned());
    }
    let version = kind.versions.iter().find(|known| known.name == version)?;
    let names: Vec<&str> = field.split('.').collect();
    let covers = |place: Option<&'static [&'static str]>| place.is_some_and(|place| names.starts_with(place));
    let length = |map: &&FieldMap| map.here.map_or(0, <[_]>::len);
    let mapped = version.map.iter().filter(|map| covers(map.here)).max_by_key(length);
    match mapped {
        Some(map) => {
            let (here, own) = (map.here?, map.own?);
            let rest = names.get(here.len()..)?;
            matches!(map.rule, MapRule::Same).then(|| [own, rest].concat().join("."))
        }
        // What the own version has there is another field.
        None if version.map.iter().any(|map| covers(map.own)) => None,
        None => Some(field.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::tests::KIND;

    #[test]
    fn a_field_has_the_name_that_it_has_in_the_own_version() {
        for (field, own) in [
            ("metadata.name", Some("metadata.name")),
            ("spec.other", Some("spec.other")),
            ("spec.rate", Some("spec.optimizer.schedule.rate")),
            ("spec.limits.cpu", Some("spec.resources.cpu")),
            ("spec.limits.memory", Some("spec.limits.memory")),
            ("spec.one", Some("spec.two")),
            ("spec.two.below", Some("spec.one.below")),
            ("spec.legacy", None),
            ("spec.mode", None),
            ("spec.optimizer.momentum", None),
            ("spec.tries", None),
            ("spec.timeout", None),
        ] {
            assert_eq!(own_field(&KIND, "v1", field).as_deref(), own, "{field}");
        }
        assert_eq!(own_field(&KIND, "v2", "spec.mode").as_deref(), Some("spec.mode"));
        assert_eq!(own_field(&KIND, "v3", "metadata.name"), None);
    }
}
