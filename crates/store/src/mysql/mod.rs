//! MySQL and MariaDB: the only folder that knows them. The files have the names, and their methods the order, of those
//! in `sqlite`.

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

mod adoption;

pub use address::{MySqlFields, Tls, TlsMode};
pub(crate) use driver::MySqlDriver;
pub(crate) use notation::MySqlSpelling;
