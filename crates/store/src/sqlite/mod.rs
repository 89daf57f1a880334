//! SQLite: the only folder that knows it. The files have the names, and their methods the order, of those
//! in `mysql`.

pub(crate) mod address;

mod pool;

mod faults;

mod cells;

mod plan;

mod notation;

mod reads;

mod conditions;

mod writes;

mod catalog;

mod schema_changes;

mod driver;

pub use address::SqliteLocation;
pub(crate) use driver::SqliteDriver;
pub(crate) use notation::SqliteSpelling;
