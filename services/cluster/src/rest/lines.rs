//! The lines of a watch as they are sent: small events travel together, large texts as they are, so that all watches
//! hold one of each.

use bytes::Bytes;
use kindex_kube_api::watch::{EventType, FRAME_END};
use kindex_serve::watches::Watches;

/// From this size on a text is worth a piece of its own.
pub(super) const LARGE_BYTES: usize = 16 * 1024;

/// Lines that travel together.
#[derive(Default)]
pub(super) struct Lines {
    pieces: Vec<Bytes>,
    /// What was not made a piece yet.
    text: Vec<u8>,
    bytes: usize,
}

impl Lines {
    /// Bytes of all of them.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// A line of an object's text, which is copied.
    pub(super) fn push(&mut self, event: &EventType, object: &[u8]) {
        self.add(event.frame_start().as_bytes());
        self.add(object);
        self.add(FRAME_END.as_bytes());
    }

    /// A line of an object's text, which others hold as well and count.
    pub(super) fn push_shared(&mut self, event: &EventType, object: Bytes, watches: &Watches) {
        self.add(event.frame_start().as_bytes());
        self.cut(watches);
        self.bytes += object.len();
        self.pieces.push(object);
        self.add(FRAME_END.as_bytes());
    }

    /// The pieces, none where there is no line.
    pub(super) fn finish(mut self, watches: &Watches) -> Vec<Bytes> {
        self.cut(watches);
        self.pieces
    }

    fn add(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.bytes += text.len();
    }

    fn cut(&mut self, watches: &Watches) {
        if !self.text.is_empty() {
            self.pieces
                .push(watches.counted(Bytes::from(std::mem::take(&mut self.text))));
        }
    }
}
