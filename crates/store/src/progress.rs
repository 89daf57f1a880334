//! The progress of a long operation, for a display.

/// Receives progress.
pub trait Progress: Send + Sync {
    /// A part of the work begins, such as one kind; `total` is how much there is to do, where that is known.
    fn begin(&self, part: &str, total: Option<u64>);

    /// So much more is done.
    fn advance(&self, count: u64);

    /// An uncounted step begins, such as `confirming 12 differences`.
    fn note(&self, note: &str);

    /// The part is done.
    fn end(&self);
}

/// Discards progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
    fn note(&self, _: &str) {}
    fn end(&self) {}
}
