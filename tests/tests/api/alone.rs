//! Kinds that no cluster has, for these tests.

use kindex_generated::kinds::{model, project};
use kindex_model::kind::Kind;

/// Models, and projects that no cluster has.
pub(super) static ALONE: &[&Kind] = &[&model::KIND, &SQL_ONLY_PROJECT];
/// Projects that no cluster has.
pub(super) static SQL_ONLY_PROJECT: Kind = Kind {
    cluster: false,
    events: false,
    ..project::KIND
};
/// Models, and such projects with events.
pub(super) static NOTICED: &[&Kind] = &[&model::KIND, &NOTICED_PROJECT];
/// Models that no cluster has, and projects.
pub(super) static SQL_ONLY_MODELS: &[&Kind] = &[&SQL_ONLY_MODEL, &project::KIND];
/// Models that no cluster has, and that no deletion waits for but by references that are placed over HTTP.
static SQL_ONLY_MODEL: Kind = Kind {
    cluster: false,
    references: &[],
    ..model::KIND
};
/// Projects that no cluster has, with events.
pub(super) static NOTICED_PROJECT: Kind = Kind {
    cluster: false,
    events: true,
    ..project::KIND
};
