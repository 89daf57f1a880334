//! Reads request messages and writes response messages.

use bytes::Bytes;
use prost::Message;
use serde_json::Value;

use super::status::{Violation, invalid};
use crate::operations::{Reason, Refusal};

/// A message, and what its reader should know.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) message: Vec<u8>,
    pub(super) warnings: Vec<String>,
}

/// A message of a request.
///
/// # Errors
/// `INVALID_ARGUMENT` for bytes that are none.
pub(super) fn decode<M: Message + Default>(request: Bytes) -> Result<M, Refusal> {
    M::decode(request).map_err(|error| invalid(&[Violation::new("", format!("the request cannot be read: {error}"))]))
}

/// The fields of an object that the cluster or SQL sent.
///
/// # Errors
/// `INTERNAL` for a text that is too deep to be read.
pub(super) fn parsed(text: &str) -> Result<Value, Refusal> {
    serde_json::from_str(text).map_err(|error| {
        let message = format!("Internal error occurred: the object cannot be read: {error}");
        Refusal::new(Reason::InternalError, message)
    })
}
