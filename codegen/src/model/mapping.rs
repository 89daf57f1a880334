//! How a field of one version of a kind maps to that of another.

use super::Path;

/// A field that differs between a version and the kind's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMap {
    /// Where this version has it, if it has a place for it.
    pub here: Option<Path>,
    /// Where the kind's own version has it, if it has a place for it.
    pub own: Option<Path>,
    /// How one value follows from the other.
    pub rule: MapRule,
}

/// How the value of one version follows from that of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapRule {
    /// It is the same.
    Same,
    /// It is the same, and this JSON where there is none.
    Default(String),
    /// By Rust functions, named by their paths.
    Function {
        /// To the kind's own version.
        to_own: String,
        /// And back.
        from_own: String,
    },
}
