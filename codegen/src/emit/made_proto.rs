//! The `.proto` files that `lower` made from inline fields and CRD manifests, for clients in other languages.

use crate::artifact::{Artifacts, RelativePath};
use crate::model::Model;

/// The directory of the emitted `.proto` files; below it lies the import path.
const DIRECTORY: &str = "schema/proto";

/// One file for each kind that has no message in `proto/`.
pub(super) fn emit(model: &Model) -> Artifacts {
    model
        .made_protos
        .iter()
        .map(|(import_path, text)| {
            let path = RelativePath::new(format!("{DIRECTORY}/{import_path}"));
            (path, text.clone())
        })
        .collect()
}
