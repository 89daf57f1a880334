//! Stored objects in the version that their kind has by now: a row, or a version of the history, may have been written
//! in another one.

use kindex_model::kind::{Kind, Platform, Registry};
use kindex_model::object::Object;
use kindex_query::Stored;
use kindex_store::HistoryVersion;

use crate::cli::AsStoredArg;
use crate::error::chain;
use crate::say;

/// The object in its kind's own version. As it is stored where it has no form in that, which is said on stderr.
pub(crate) fn object(platform: &Platform, kind: &Kind, stored: &Object) -> Object {
    match kindex_convert::object_in(platform, kind, stored, kind.version) {
        Ok(object) => object,
        Err(error) => {
            let is = &stored.metadata.api_version;
            let error = chain(&error);
            say::note(format_args!("note: shown in {is}, as it is stored: {error}"));
            stored.clone()
        }
    }
}

/// The same of rows.
pub(crate) fn row(platform: &Platform, kind: &Kind, row: Stored) -> Stored {
    Stored {
        object: object(platform, kind, &row.object),
        ..row
    }
}

/// In which version of its kind a past object is shown.
#[derive(Clone, Copy)]
pub(crate) struct VersionView<'a> {
    platform: &'a Platform,
    kind: &'static Kind,
    as_stored: bool,
}

impl<'a> VersionView<'a> {
    pub(crate) fn new(registry: &'a Registry, kind: &'static Kind, arg: AsStoredArg) -> Self {
        Self {
            platform: &registry.platform,
            kind,
            as_stored: arg.as_stored,
        }
    }

    /// The version of an object as it is shown.
    pub(crate) fn of(self, past: HistoryVersion) -> HistoryVersion {
        if self.as_stored {
            return past;
        }
        HistoryVersion {
            object: object(self.platform, self.kind, &past.object),
            ..past
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use kindex_generated::kinds::model;
    use kindex_generated::registry::PLATFORM;
    use kindex_model::kind::{FieldMap, MapRule, Version};

    const V1: Version = Version {
        name: "v1",
        served: true,
        stored: false,
        deprecated: None,
        map: &[FieldMap {
            here: Some(&["spec", "method"]),
            own: Some(&["spec", "algorithm"]),
            rule: MapRule::Same,
        }],
    };

    static KIND: Kind = Kind {
        versions: &[V1],
        ..model::KIND
    };

    fn shown(text: &str, as_stored: bool) -> String {
        let view = VersionView {
            platform: &PLATFORM,
            kind: &KIND,
            as_stored,
        };
        let past = HistoryVersion {
            object: Object::parse_str(text).expect("an object"),
            seen: Timestamp::UNIX_EPOCH,
            branch: 0,
        };
        view.of(past).object.text().to_owned()
    }

    #[test]
    fn a_past_version_is_shown_in_the_kinds_own_unless_asked_otherwise() {
        let old = concat!(
            r#"{"apiVersion":"michelangelo.api/v1","metadata":{"name":"a","uid":"u","resourceVersion":"7"},"#,
            r#""spec":{"method":"x"}}"#
        );
        let new = old.replace("api/v1", "api/v2").replace("method", "algorithm");
        assert_eq!(shown(old, false), new);
        assert_eq!(shown(old, true), old);
        assert_eq!(shown(&new, false), new);
        let unknown = old.replace("api/v1", "api/v0");
        assert_eq!(
            shown(&unknown, false),
            unknown,
            "what does not convert is shown as it was"
        );
    }
}
