//! The text of all statements, in the notation of `dialect`, but those of migrations and of repair. Executes nothing.

mod names;

mod text;

mod versions;

mod kind;

pub(crate) mod bookkeeping;

pub(crate) mod references;

pub(crate) mod outbox;

pub(crate) mod history;

pub(crate) mod version_counts;

pub(crate) mod writer;

mod condition;

mod from;

pub(crate) mod select;

#[cfg(test)]
pub(crate) mod typed_queries;

pub(crate) use kind::{KindSql, ListFilter};
pub(crate) use names::{SEQ, tables};
pub(crate) use text::{LIST_MAX, cells, exact, fixed, kept, once, padded, padded_list, padded_pairs, quoted};
