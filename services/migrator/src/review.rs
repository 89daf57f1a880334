//! The answer to a ConversionReview: its objects in the other version, by the tables of their kinds. Texts in, texts
//! out.

use std::fmt;

use kindex_convert::convert;
use kindex_kube_api::conversion::{ConversionReview, Request, ReviewError, answer};
use kindex_model::kind::{Kind, Registry};
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

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
    let Request {
        uid,
        desired_api_version,
        objects,
    } = ConversionReview::read(text)?.request;
    let visitor = ListConverter {
        registry,
        desired: &desired_api_version,
    };
    let converted = serde_json::Deserializer::from_str(objects.get()).deserialize_seq(visitor)?;
    Ok(Reviewed {
        converted: converted.is_ok(),
        answer: answer(&uid, converted),
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
    let kind = find(registry, group, &kind).ok_or_else(|| format!("{kind}.{group} is not a kind of Kindex"))?;
    let text = convert(&registry.platform, kind, object, version).map_err(|error| error.to_string())?;
    RawValue::from_string(text).map_err(|error| error.to_string())
}

fn find(registry: &Registry, group: &str, name: &str) -> Option<&'static Kind> {
    let mut kinds = registry.kinds.iter().copied();
    kinds.find(|kind| kind.group == group && kind.name == name)
}

#[cfg(test)]
mod tests;
