//! What Kindex knows of a kind and of an object: tables, columns and keys, values, the exact text with its metadata,
//! its fields as values, all or those at some paths, the projection into columns, and the message encoding; how far an
//! object is, the record of its deletion, the references that an API has released, and what is left to do after a move;
//! and errors as texts. Knows no kind, no SQL and no network.
//! Modules are in reading order: each imports only those above it.

pub mod causes;

pub mod reference;

pub mod reference_name;

pub mod kind;

mod kind_names;

mod empty;

mod sql_only;

mod texts;

pub mod tables;

pub mod spelling;

pub mod picked;

pub mod named_object;

pub mod value;

pub mod wire;

pub mod indexed;

pub mod typed;

pub mod object;

pub mod object_state;

mod fields;

pub mod row_version;

pub mod checkpoint;

pub mod releases;

pub mod settling;

mod phases;

pub mod deletion;

pub mod head;

pub mod projection;

pub mod uid_set;
