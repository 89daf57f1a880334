//! Artifacts: files of a run, sent and fetched by signed addresses that the service serves itself. What an address
//! allows and whether an upload is what was announced is pure. Names of artifacts are data: a file is called by the id
//! of its upload.

mod upload;

mod address;

mod verdict;

mod files;

mod rows;

mod commands;

mod shelf;

mod check;

mod range;

mod content;

pub use address::{ADDRESS_LIFETIME, Addresses};
pub use check::check;
pub use files::Files;
pub use shelf::Artifacts;
pub use upload::UPLOAD_LIFETIME;

#[cfg(test)]
mod tests;
