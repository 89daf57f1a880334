//! A ConversionReview and its answer: texts in, texts out.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/>

use std::fmt;

use kindex_convert::convert;
use kindex_model::kind::{Kind, Registry};
use serde::de::{Deserializer as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The body is no review.
    #[error("not a {KIND}: {0}")]
    Body(#[from] serde_json::Error),
    /// It is of another version, or something else.
    #[error("{0} {1} is not answered here: only {API_VERSION} {KIND} is")]
    Unknown(String, String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConversionReview<'t> {
    api_version: String,
    kind: String,
    #[serde(borrow)]
    request: Request<'t>,
}

#[derive(Deserialize)]
struct Request<'t> {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    #[serde(borrow)]
    objects: &'t RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'t> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'t>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'t> {
    uid: &'t str,
    converted_objects: Vec<Box<RawValue>>,
    result: Outcome,
}

#[derive(Serialize)]
struct Outcome {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// An answer to a review.
#[derive(Debug)]
pub struct Reviewed {
    /// The review with its response.
    pub answer: String,
    /// Whether it has the objects, and not the reason why there are none.
    pub converted: bool,
}

/// The answer to a review: its objects in the version that it asks for, in their order, or why the first that has no
/// form in it has none.
///
/// # Errors
/// What is no review of the version that is answered.
pub fn review(registry: &Registry, text: &[u8]) -> Result<Reviewed, ReviewError> {
    let sent: ConversionReview<'_> = serde_json::from_slice(text)?;
    if sent.api_version != API_VERSION || sent.kind != KIND {
        return Err(ReviewError::Unknown(sent.api_version, sent.kind));
    }
    let Request {
        uid,
        desired_api_version,
        objects,
    } = &sent.request;
    let visitor = ListConverter {
        registry,
        desired: desired_api_version,
    };
    let converted = serde_json::Deserializer::from_str(objects.get()).deserialize_seq(visitor)?;
    let is_converted = converted.is_ok();
    let (converted_objects, status, message) = match converted {
        Ok(objects) => (objects, "Success", None),
        Err(message) => (Vec::new(), "Failure", Some(message)),
    };
    let answer = Answer {
        api_version: API_VERSION,
        kind: KIND,
        response: Response {
            uid,
            converted_objects,
            result: Outcome { status, message },
        },
    };
    Ok(Reviewed {
        answer: serde_json::to_string(&answer)?,
        converted: is_converted,
    })
}

/// Converts the elements of a list as they are read. After the first that has no form in the version, none is kept: a
/// list of millions of numbers takes no memory.
struct ListConverter<'r> {
    registry: &'r Registry,
    desired: &'r str,
}

impl<'de> Visitor<'de> for ListConverter<'_> {
    type Value = Result<Vec<Box<RawValue>>, String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut objects: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(object) = objects.next_element::<&'de RawValue>()? {
            match converted(self.registry, object.get(), self.desired) {
                Ok(object) => all.push(object),
                Err(message) => {
                    while objects.next_element::<IgnoredAny>()?.is_some() {}
                    return Ok(Err(message));
                }
            }
        }
        Ok(Ok(all))
    }
}

fn converted(registry: &Registry, object: &str, desired: &str) -> Result<Box<RawValue>, String> {
    #[derive(Deserialize)]
    struct Named {
        kind: String,
    }
    let Named { kind } = serde_json::from_str(object).map_err(|error| error.to_string())?;
    let (group, version) = desired.split_once('/').unwrap_or(("", desired));
    let kind = find(registry, group, &kind).ok_or_else(|| format!("{kind}.{group} is no kind of Kindex"))?;
    let text = convert(&registry.platform, kind, object, version).map_err(|error| error.to_string())?;
    RawValue::from_string(text).map_err(|error| error.to_string())
}

fn find(registry: &Registry, group: &str, name: &str) -> Option<&'static Kind> {
    let mut kinds = registry.kinds.iter().copied();
    kinds.find(|kind| kind.group == group && kind.name == name)
}

#[cfg(test)]
mod tests;
