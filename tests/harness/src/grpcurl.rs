//! The published grpcurl, made by `tests/grpcurl/build`. Knows no call.

use crate::tools::tools;

/// Whether `tests/grpcurl/build` was run.
pub fn installed() -> bool {
    tools().join("grpcurl").is_file()
}
