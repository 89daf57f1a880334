//! What the engine has room for.
//! <https://sqlite.org/limits.html>

use crate::dialect::Limits;

/// A row may have a thousand million bytes, and names and keys no less.
pub(super) const LIMITS: Limits = Limits::NONE;
