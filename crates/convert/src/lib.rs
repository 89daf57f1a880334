//! Objects of one version of a kind in another version: texts in, texts out, by the tables of the kind. Knows no kind,
//! no schema and no server. Modules are in reading order: each imports only those above it.

mod tree;

mod conversion_data;

mod pair;

mod step;

mod convert;

mod stored;

mod field;

pub use convert::{ConvertError, convert};
pub use field::own_field;
pub use stored::{object_in, text_in, with_api_version};
pub use tree::Problem;
