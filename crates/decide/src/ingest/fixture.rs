//! Objects, rows and decisions on them, as the tests of the decisions have them.

use std::time::Duration;

use jiff::Timestamp;
use kindex_model::head::Head;
use kindex_model::object::ResourceVersion;
use kindex_model::row_version::RowVersion;
use kindex_query::{Life, Revive};

use super::{Action, Context, FollowUp, Observed, OwnDelete, OwnedObjects, Write, decide};
use crate::row::{Row, RowText};

pub(super) const DELAY: Duration = Duration::from_secs(10);

pub(super) fn at(version: u64) -> ResourceVersion {
    ResourceVersion(version)
}

pub(super) fn context() -> Context {
    Context {
        now: Timestamp::from_second(1_000_000).expect("in range"),
        leaving_for: Duration::ZERO,
        deletion_delay: Duration::ZERO,
        finalizer_wait: Duration::ZERO,
        adopt_finalizers: false,
        confirmed: None,
        own_delete: OwnDelete::Unknown,
        unsure: false,
        owns: false,
        owned_objects: OwnedObjects::Absent,
    }
}

pub(super) fn head(version: u64) -> Head {
    Head {
        version: at(version),
        deletion_timestamp: None,
        has_finalizer: true,
        held: false,
        has_references: false,
        has_deletion_finalizer: false,
        deleting: false,
        immutable: false,
    }
}

pub(super) fn terminating(version: u64) -> Head {
    Head {
        deletion_timestamp: Some(context().now),
        ..head(version)
    }
}

pub(super) fn marked(version: u64) -> Head {
    Head {
        deleting: true,
        ..head(version)
    }
}

pub(super) fn immutable(version: u64) -> Head {
    Head {
        immutable: true,
        ..head(version)
    }
}

pub(super) fn row(version: u64, life: Life) -> Row {
    Row {
        version: RowVersion::Cluster(at(version)),
        life,
        text: RowText::Trusted,
    }
}

pub(super) fn decided(head: Head, row: Option<Row>) -> Action {
    decide(&Observed::Present(head), row.as_ref(), &context())
}

pub(super) fn action(write: Option<Write>, then: FollowUp) -> Action {
    Action { write, then }
}

pub(super) fn stored(life: Life) -> Option<Write> {
    Some(Write::Store {
        life,
        revive: Revive::Never,
    })
}

pub(super) fn revived(from: Life, life: Life) -> Option<Write> {
    Some(Write::Store {
        life,
        revive: Revive::From(from),
    })
}
