//! The one entry: an object's text in another version, by way of the kind's own version.

use kindex_model::kind::{Kind, Platform, Version};
use serde::Deserialize;

use super::conversion_data::ConversionData;
use super::pair::Direction;
use super::step::step;
use super::tree::{Node, Problem};

/// An object that cannot be converted.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name}: {problem}")]
pub struct ConvertError {
    /// The kind.
    pub kind: &'static str,
    /// `namespace/name`, or the name alone.
    pub name: String,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

impl ConvertError {
    pub(crate) fn of(kind: &Kind, text: &str, problem: Problem) -> Self {
        Self {
            kind: kind.name,
            name: name(text),
            problem,
        }
    }
}

/// The object in `version` of its kind.
///
/// # Guarantees
/// There and back gives the same object, unless it was changed in between: what a version has no place for is carried
/// in the annotation [`Platform::conversion_data`]. Every value that is not mapped stays to the byte. Of the metadata
/// only that annotation changes.
///
/// # Errors
/// The text is no object of the kind, `version` is none of the kind's, or a function of the platform refuses a value.
pub fn convert(platform: &Platform, kind: &Kind, text: &str, version: &str) -> Result<String, ConvertError> {
    converted(platform, kind, text, version).map_err(|problem| ConvertError::of(kind, text, problem))
}

fn converted(platform: &Platform, kind: &Kind, text: &str, to: &str) -> Result<String, Problem> {
    let mut object = Node::of(text);
    let api_version = api_version(&mut object)?;
    let unknown = || Problem::UnknownVersion(api_version.clone());
    let from = match api_version.split_once('/') {
        Some((group, from)) if group == kind.group => from,
        Some(_) | None => return Err(unknown()),
    };
    if from == to {
        return Ok(text.to_owned());
    }
    let mut data = ConversionData::take(&mut object, platform.conversion_data)?;
    if from != kind.version {
        let version = find(kind, from).ok_or_else(unknown)?;
        let carried = data.remove(kind.version);
        data.insert(from, step(&mut object, version, Direction::ToOwn, carried)?);
    }
    let made = format!("{}/{to}", kind.group);
    if to != kind.version {
        let version = find(kind, to).ok_or_else(|| Problem::UnknownVersion(made.clone()))?;
        let carried = data.remove(to);
        data.insert(kind.version, step(&mut object, version, Direction::FromOwn, carried)?);
    }
    data.put(&mut object, platform.conversion_data)?;
    let made = serde_json::to_string(&made)?;
    object.put(&["apiVersion"], Node::of(made))?;
    Ok(object.to_string())
}

fn find<'k>(kind: &'k Kind, name: &str) -> Option<&'k Version> {
    kind.versions.iter().find(|version| version.name == name)
}

fn api_version(object: &mut Node) -> Result<String, Problem> {
    let found = object.at(&["apiVersion"])?.map(|node| node.to_string());
    let text = found.unwrap_or_else(|| "null".to_owned());
    Ok(serde_json::from_str::<Option<String>>(&text)?.unwrap_or_default())
}

/// What people call the object, as far as its text says so.
fn name(text: &str) -> String {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Named {
        metadata: Metadata,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Metadata {
        namespace: String,
        name: String,
    }
    let Metadata { namespace, name } = serde_json::from_str::<Named>(text).unwrap_or_default().metadata;
    match namespace.as_str() {
        "" => name,
        namespace => format!("{namespace}/{name}"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
