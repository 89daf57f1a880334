//! The headers `kindex-at` and `kindex-include-deleted`, which select the state that a read returns. The messages are
//! Michelangelo's and have no fields for them.

use http::HeaderMap;
use jiff::Timestamp;

use super::method::Action;
use super::status::{Violation, invalid};
use crate::operations::Refusal;

/// What all names begin with that are ours: a misspelled one is refused, and never passed over.
const PREFIX: &str = "kindex-";
const AT: &str = "kindex-at";
const INCLUDE_DELETED: &str = "kindex-include-deleted";

/// Which state of the objects is wanted; the present one, unless the call says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Past {
    /// As of this moment.
    pub(super) at: Option<Timestamp>,
    /// Also what was deleted.
    pub(super) include_deleted: bool,
}

impl Past {
    /// As the headers of a call say.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with a violation for each header that is unknown, given twice or no value of its kind, and
    /// for calls that read nothing of the past.
    pub(super) fn read(headers: &HeaderMap, action: Action) -> Result<Self, Refusal> {
        let mut past = Self::default();
        let mut violations = Vec::new();
        for name in headers.keys().filter(|name| name.as_str().starts_with(PREFIX)) {
            if let Err(message) = past.take(headers, name.as_str(), action) {
                violations.push(Violation::new(name.as_str(), message));
            }
        }
        if past.at.is_some() && past.include_deleted {
            let message = format!("is not for lists and objects of the past: leave it out, or leave out {AT}");
            violations.push(Violation::new(INCLUDE_DELETED, message));
        }
        if violations.is_empty() {
            return Ok(past);
        }
        Err(invalid(&violations))
    }

    fn take(&mut self, headers: &HeaderMap, name: &str, action: Action) -> Result<(), String> {
        if ![AT, INCLUDE_DELETED].contains(&name) {
            return Err(format!("is unknown: there are {AT} and {INCLUDE_DELETED}"));
        }
        if !matches!(action, Action::Get | Action::List) {
            return Err("is for Get and List: leave it out".to_owned());
        }
        let mut values = headers.get_all(name).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err("is given more than once".to_owned());
        };
        let text = value.to_str().map_err(|_| "is not text".to_owned())?;
        match (name, text) {
            (AT, moment) => {
                let time = moment.parse();
                self.at = Some(time.map_err(|error| {
                    format!("{moment:?} is not a time: {error}: write it as RFC 3339, such as 2026-11-01T12:00:00Z")
                })?);
            }
            (_, "true") => self.include_deleted = true,
            (_, "false") => {}
            (_, other) => return Err(format!("{other:?} is neither true nor false")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn read(headers: &[(&'static str, &str)], action: Action) -> Result<Past, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).expect("a value");
            map.append(HeaderName::from_static(name), value);
        }
        Past::read(&map, action).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_call_without_our_metadata_is_of_the_present() {
        let other = [("authorization", "Bearer x"), ("user-agent", "kindex-at")];
        assert_eq!(read(&other, Action::Delete), Ok(Past::default()));
        let off = [("kindex-include-deleted", "false")];
        assert_eq!(read(&off, Action::List), Ok(Past::default()));
    }

    #[test]
    fn both_headers_are_read() {
        let at = read(&[("kindex-at", "2026-11-01T12:00:00+01:00")], Action::Get).expect("a state");
        assert_eq!(at.at, "2026-11-01T11:00:00Z".parse().ok());
        let deleted = read(&[("kindex-include-deleted", "true")], Action::List).expect("a state");
        assert!(deleted.include_deleted && deleted.at.is_none());
    }

    #[test]
    fn what_says_no_state_is_refused_by_its_name() {
        let now = ("kindex-at", "2026-11-01T12:00:00Z");
        let deleted = ("kindex-include-deleted", "true");
        for (headers, action, message) in [
            (
                vec![("kindex-at", "yesterday")],
                Action::Get,
                "kindex-at: \"yesterday\" is not a time",
            ),
            (
                vec![("kindex-include-deleted", "1")],
                Action::List,
                "neither true nor false",
            ),
            (
                vec![("kindex-include-deletd", "true")],
                Action::List,
                "kindex-include-deletd: is unknown",
            ),
            (vec![now, now], Action::List, "more than once"),
            (vec![now, deleted], Action::List, "leave out kindex-at"),
            (vec![now], Action::Delete, "is for Get and List"),
            (vec![deleted], Action::Watch, "is for Get and List"),
            (vec![deleted], Action::DeleteCollection, "is for Get and List"),
        ] {
            let refused = read(&headers, action).expect_err("a refusal");
            assert!(refused.contains(message), "{refused}");
        }
    }
}
