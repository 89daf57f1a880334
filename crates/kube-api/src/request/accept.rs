//! The format of the answer, from the Accept header.

use crate::media;
use crate::partial;
use crate::table;

/// A form of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rendering {
    /// The objects as JSON.
    Json,
    /// The objects as YAML.
    Yaml,
    /// `meta.k8s.io/v1` Table.
    Table,
    /// `meta.k8s.io/v1` PartialObjectMetadata: objects without content.
    Metadata,
}

/// The first of the accepted forms that is offered, in the client's order. No header accepts everything.
pub fn rendering(accept: Option<&str>) -> Option<Rendering> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return Some(Rendering::Json);
    };
    accept.split(',').find_map(|range| {
        let (essence, parameters) = split(range);
        let base = match essence {
            media::JSON | "application/*" | "*/*" => Rendering::Json,
            media::YAML => Rendering::Yaml,
            _ => return None,
        };
        match parameters.iter().find(|(name, _)| *name == "as") {
            None => Some(base),
            Some((_, form)) if parameters.contains(&("g", "meta.k8s.io")) && parameters.contains(&("v", "v1")) => {
                match *form {
                    table::KIND => Some(Rendering::Table),
                    partial::KIND | partial::LIST_KIND => Some(Rendering::Metadata),
                    _ => None,
                }
            }
            Some(_) => None,
        }
    })
}

/// Whether the client prefers all of discovery in one answer.
pub fn wants_aggregated_discovery(accept: Option<&str>) -> bool {
    accept.unwrap_or_default().split(',').any(|range| {
        let (essence, parameters) = split(range);
        essence == media::JSON
            && parameters.contains(&("as", "APIGroupDiscoveryList"))
            && parameters.contains(&("g", "apidiscovery.k8s.io"))
            && parameters.contains(&("v", "v2"))
    })
}

fn split(range: &str) -> (&str, Vec<(&str, &str)>) {
    let mut parts = range.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    (essence, parts.filter_map(|part| part.split_once('=')).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_first_offered_form_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(rendering(Some(kubectl)), Some(Rendering::Table));
        assert_eq!(
            rendering(Some(
                "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
            )),
            Some(Rendering::Json)
        );
        assert_eq!(
            rendering(Some("application/vnd.kubernetes.protobuf, application/json")),
            Some(Rendering::Json)
        );
        assert_eq!(rendering(Some("application/yaml")), Some(Rendering::Yaml));
        assert_eq!(rendering(None), Some(Rendering::Json));
        assert_eq!(rendering(Some("application/vnd.kubernetes.protobuf")), None);
    }
}
