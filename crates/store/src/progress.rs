//! How far a long work is, told to whoever shows it. Knows no terminal.

/// Who is told.
pub trait Progress: Send + Sync {
    /// A part of the work begins, such as one kind; `total` is how much there is to do, where that is known.
    fn begin(&self, part: &str, total: Option<u64>);

    /// So much more is done.
    fn advance(&self, count: u64);

    /// Something that is not counted is under way, such as `confirming 12 differences`.
    fn note(&self, note: &str);

    /// The part is done.
    fn end(&self);
}

/// Nobody is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untold;

impl Progress for Untold {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
    fn note(&self, _: &str) {}
    fn end(&self) {}
}
