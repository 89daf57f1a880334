//! Prepares an object for storage: unknown fields are pruned, defaults filled in, system fields set or kept, and the
//! result validated. Pure functions of the request and the stored object.

mod kinds;

mod known;

mod metadata;

mod create;

mod update;

use jiff::Timestamp;
use kindex_kube_api::request::Subresource;

pub(crate) use create::create;
pub(crate) use kinds::{is_released, mark_deleting};
pub(crate) use known::{DecodedObject, accept};
pub(crate) use metadata::warnings;
pub(crate) use update::{Outcome, update};

/// Who changes an object, and through which subresource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Author<'a> {
    /// The field manager.
    pub(crate) manager: &'a str,
    /// The subresource that the request names.
    pub(crate) subresource: Option<Subresource>,
    /// Whether managed fields have been settled by server-side apply already.
    pub(crate) applied: bool,
    /// The time of the request.
    pub(crate) now: Timestamp,
}

#[cfg(test)]
mod tests;
