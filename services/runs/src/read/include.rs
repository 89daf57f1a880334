//! Which parts of a run an answer has.

use crate::refusal::{Code, Refusal};

/// Parts that are read only where they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Include {
    pub(super) summary: bool,
    pub(super) params: bool,
    pub(super) tags: bool,
    pub(super) system_info: bool,
}

impl Include {
    pub(super) const ALL: Self = Self {
        summary: true,
        params: true,
        tags: true,
        system_info: true,
    };

    const NONE: Self = Self {
        summary: false,
        params: false,
        tags: false,
        system_info: false,
    };

    /// Of the fields that a request names; all of them if it names none.
    pub(super) fn of(fields: &[String]) -> Result<Self, Refusal> {
        if fields.is_empty() {
            return Ok(Self::ALL);
        }
        let mut include = Self::NONE;
        for (place, field) in fields.iter().enumerate() {
            let part = match field.as_str() {
                "summary" => &mut include.summary,
                "params" => &mut include.params,
                "tags" => &mut include.tags,
                "system_info" => &mut include.system_info,
                unknown => {
                    let message = format!(
                        "include_fields: a run has no part {unknown:?}; choose of summary, params, tags and system_info"
                    );
                    let refusal = Refusal::new(Code::InvalidArgument, "INVALID_FIELD", message);
                    return Err(refusal.at(format!("include_fields[{place}]")));
                }
            };
            *part = true;
        }
        Ok(include)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_unless_some_are_named() {
        let of = |fields: &[&str]| Include::of(&fields.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of(&[]), Ok(Include::ALL));
        let tags = Include {
            tags: true,
            ..Include::NONE
        };
        assert_eq!(of(&["tags"]), Ok(tags));
        let refusal = of(&["tags", "points"]).expect_err("no such part");
        assert_eq!(refusal.field, "include_fields[1]");
    }
}
