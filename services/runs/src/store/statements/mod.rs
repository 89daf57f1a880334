//! The statements of the writer, a file for each table, and one for the file itself. Knows rows, and decides nothing.

pub(super) mod counters;

pub(super) mod names;

pub(super) mod batches;

pub(super) mod runs;

pub(super) mod attributes;

pub(super) mod chunks;

pub(super) mod pages;
