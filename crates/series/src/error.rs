//! Why bytes are not an encoded batch or chunk.

/// Bytes that no encoder of this crate wrote, or that were damaged since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They end too early.
    #[error("the bytes end before the points do")]
    Truncated,
    /// A number takes more than 64 bits.
    #[error("a number has more than 64 bits")]
    NumberTooLong,
    /// Their first byte is unknown.
    #[error("format {0} is unknown to this version")]
    Format(u8),
    /// A column is encoded in a way that is unknown.
    #[error("encoding {0} of a column is unknown to this version")]
    Encoding(u8),
    /// More points than a batch or chunk can have.
    #[error("{0} points are more than a chunk can have")]
    TooManyPoints(u64),
    /// The compressed part of a column does not have the bytes that it should have.
    #[error("the compressed bytes of a column are damaged")]
    Compressed,
    /// A point has a metric that the batch does not list.
    #[error("a point has metric {0}, which is not listed")]
    UnknownName(u64),
    /// The steps of a chunk are not strictly ascending.
    #[error("the steps of the chunk are not ascending")]
    Unordered,
    /// There are more bytes than the points take.
    #[error("{0} bytes follow the last point")]
    Trailing(usize),
}
