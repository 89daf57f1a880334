//! One event of a watch.

use std::io;

use bytes::Bytes;
use kindex_kube_api::watch::{EventType, Frame};
use kindex_serve::watches::Watches;

/// One event.
#[derive(Debug)]
pub struct Event {
    /// What happened.
    pub r#type: EventType,
    /// JSON text, held once for all watches that tell it.
    pub object: Bytes,
}

impl Event {
    /// Reads a line of the cluster.
    ///
    /// # Errors
    /// What is no event.
    pub(crate) fn read(line: Vec<u8>, watches: &Watches) -> io::Result<Self> {
        let line = watches.shared(Bytes::from(line));
        let read: Frame<'_> = serde_json::from_slice(&line)?;
        Ok(Self {
            object: line.slice_ref(read.object.get().as_bytes()),
            r#type: read.r#type,
        })
    }

    /// The JSON text of the object.
    pub(crate) fn text(&self) -> &str {
        // A JSON text was read, or written.
        str::from_utf8(&self.object).unwrap_or_default()
    }
}
