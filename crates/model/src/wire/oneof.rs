//! Oneofs: at most one of several fields, which JSON shows directly in the message. serde's own
//! flattening takes any error in a member for absence; this reading reports it.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value as Json;

use super::report::{forgive, report};
use super::tracked::Members;

/// The enum of a oneof's members.
pub trait Oneof: for<'de> Deserialize<'de> {
    /// JSON names of the members, in order of declaration.
    const MEMBERS: &'static [&'static str];
}

/// Reads a oneof out of the members of its message that no other field has taken; for
/// `#[serde(flatten, deserialize_with = "…")]`.
///
/// A member that is null is absent. Of two members the one declared first is read and the fact is
/// reported; a member whose content does not fit is reported and reads as absent.
///
/// # Errors
/// Only where the message is no object.
pub fn oneof<'de, T: Oneof, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let present = deserializer.deserialize_map(PresentVisitor::<T>(PhantomData))?;
    if present.len() > 1 {
        let names: Vec<&str> = present.keys().map(String::as_str).collect();
        report(format!(
            "only one of {} can be set; the first declared is read",
            names.join(", ")
        ));
    }
    let first = T::MEMBERS.iter().find_map(|member| present.get_key_value(*member));
    Ok(first.and_then(|(name, content)| read(name, content)))
}

fn read<T: Oneof>(name: &String, content: &Json) -> Option<T> {
    let member = Members::new(std::iter::once((name, content)));
    T::deserialize(member.into_enum()).map_err(forgive).ok()
}

struct PresentVisitor<T>(PhantomData<T>);

impl<'de, T: Oneof> Visitor<'de> for PresentVisitor<T> {
    type Value = BTreeMap<String, Json>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with one of {}", T::MEMBERS.join(", "))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut present = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if !T::MEMBERS.contains(&name.as_str()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let content = map.next_value::<Json>()?;
            if !content.is_null() {
                present.insert(name, content);
            }
        }
        Ok(present)
    }
}
