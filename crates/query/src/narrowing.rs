//! How much of a table a query would read, as types. Only a query that a key narrows, or that calls `allow_scan`, is
//! [`Runnable`].

use std::marker::PhantomData;

/// How far a query is narrowed.
pub trait Narrowing {
    /// How far it is narrowed after a filter that no key serves.
    type Filtered<C>: Narrowing;
}

/// Every row of the table.
pub enum WholeTable {}

/// The newest rows, by the key on `create_time`.
pub enum Newest {}

/// A key, a label or the caller's consent bounds what is read. Any filter may follow.
pub enum Narrowed {}

/// Every row, filtered by column `C`, which no key starts with.
pub struct Scan<C>(PhantomData<C>);

impl Narrowing for WholeTable {
    type Filtered<C> = Scan<C>;
}

impl Narrowing for Newest {
    type Filtered<C> = Scan<C>;
}

impl Narrowing for Narrowed {
    type Filtered<C> = Narrowed;
}

impl<First> Narrowing for Scan<First> {
    type Filtered<C> = Scan<First>;
}

/// A query that may run.
#[diagnostic::on_unimplemented(
    message = "this query would read the whole table: nothing narrows it",
    label = "no key serves this query",
    note = "add a filter on a keyed column or a label, ask for `.newest(n)`, or accept the scan with `.allow_scan()`",
    note = "a column gets a key by `key = true` in crds.toml"
)]
pub trait Runnable: Narrowing {}

impl Runnable for Newest {}

impl Runnable for Narrowed {}

impl<C: LeadsAKey> Runnable for Scan<C> {}

/// Implemented by no column: one that leads a key narrows the query and is never scanned
/// for. The trait exists for the message that the compiler gives.
#[diagnostic::on_unimplemented(
    message = "this query would read the whole table: no SQL key starts with column `{Self}`",
    label = "no key serves this query",
    note = "add a filter on a keyed column or a label, or accept the scan with `.allow_scan()`",
    note = "to give the column a key, write `key = true` on it in crds.toml"
)]
pub trait LeadsAKey {}
