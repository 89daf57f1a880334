//! The parameters of requests by their names, and how they are sent. What they say is read by
//! [`Query`](super::Query).

use std::fmt::Write as _;

use super::escape::escaped;

/// Which labels objects must have.
pub const LABEL_SELECTOR: &str = "labelSelector";
/// Which fields objects must have.
pub const FIELD_SELECTOR: &str = "fieldSelector";
/// How many objects a page has.
pub const LIMIT: &str = "limit";
/// Where a page begins.
pub const CONTINUE: &str = "continue";
/// Which version is read, or where a watch begins.
pub const RESOURCE_VERSION: &str = "resourceVersion";
/// How exactly the version is meant.
pub const RESOURCE_VERSION_MATCH: &str = "resourceVersionMatch";
/// Whether a collection is followed.
pub const WATCH: &str = "watch";
/// Whether a watch says how far it is.
pub const ALLOW_WATCH_BOOKMARKS: &str = "allowWatchBookmarks";
/// Whether a watch begins with what there is.
pub const SEND_INITIAL_EVENTS: &str = "sendInitialEvents";
/// How long a list or watch may take.
pub const TIMEOUT_SECONDS: &str = "timeoutSeconds";
/// Which stages leave no trace.
pub const DRY_RUN: &str = "dryRun";
/// The only value of [`DRY_RUN`].
pub const ALL_STAGES: &str = "All";
/// Who owns the fields that a write names.
pub const FIELD_MANAGER: &str = "fieldManager";
/// What to do about fields that the schema does not know.
pub const FIELD_VALIDATION: &str = "fieldValidation";
/// Whether server-side apply takes fields from other managers.
pub const FORCE: &str = "force";
/// Whether an answer is for people.
pub const PRETTY: &str = "pretty";
/// What becomes of the dependents of a deleted object.
pub const PROPAGATION_POLICY: &str = "propagationPolicy";
/// The older way to say that dependents stay.
pub const ORPHAN_DEPENDENTS: &str = "orphanDependents";
/// How long an object may take to end.
pub const GRACE_PERIOD_SECONDS: &str = "gracePeriodSeconds";

/// A path with these parameters, as a URL has them.
pub fn with_parameters(path: &str, parameters: &[(&str, String)]) -> String {
    let mut uri = path.to_owned();
    for (number, (name, value)) in parameters.iter().enumerate() {
        let separator = if number == 0 { '?' } else { '&' };
        write!(uri, "{separator}{name}={}", escaped(value)).expect("a String takes all text");
    }
    uri
}
