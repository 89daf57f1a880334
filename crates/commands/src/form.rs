//! The form of what commands print.

use clap::ValueEnum;

/// Form of a report on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Columns for people.
    Table,
    /// One JSON document.
    Json,
    /// The same as YAML.
    Yaml,
}
