//! Kindex's own tables, the same for every model.

use super::table::{NAME, RESOURCE_VERSION, Section, StorageType, TIME, Table, TableColumn, TableKey, UID, fixed_name};
use crate::model::{KeyName, SqlType, TableName};

/// A finalizer: a prefix of 253 characters, a slash, and a name of 63.
const FINALIZER: StorageType = StorageType::Sql(SqlType::VarChar(317));

/// Kindex's own tables: which schema this is and which migrations led to it, how far each kind is stored, what the
/// database refused, what work was under way, what changed of archived objects, what rows held before they were
/// converted, who uses archived objects, and what subscribers learn of objects.
pub(super) fn section() -> Section {
    Section {
        heading: "Kindex".to_owned(),
        doc: "What Kindex itself remembers: the schema's version and migrations, how far each kind is stored, refused \
              objects, the state of work that goes on for longer than a process, the last changes of objects that are \
              archived or of SQL-only kinds, for those who watch, the texts of rows before they were converted to \
              another version, the references on archived objects with those that wait for their release, and the \
              outbox of events."
            .to_owned(),
        tables: vec![
            schema_table(),
            migrations_table(),
            checkpoint_table(),
            quarantine_table(),
            state_table(),
            feed_table(),
            changes_table(),
            converted_table(),
            reference_table(),
            tombstone_table(),
            outbox_table(),
            outbox_mark_table(),
            outbox_counter_table(),
        ],
    }
}

fn schema_table() -> Table {
    own_table(
        "kindex_schema",
        &["version"],
        &[
            ("version", StorageType::Sql(SqlType::Int), true),
            ("checksum", StorageType::Sql(SqlType::VarChar(64)), true),
            ("applied_time", TIME, true),
        ],
    )
}

fn migrations_table() -> Table {
    own_table(
        "kindex_migrations",
        &["number"],
        &[
            ("number", StorageType::Sql(SqlType::Int), true),
            ("name", NAME, true),
            ("checksum", StorageType::Sql(SqlType::VarChar(64)), true),
            ("compatible", StorageType::Sql(SqlType::Int), true),
            ("steps_done", StorageType::Sql(SqlType::Int), true),
            ("fill_after", StorageType::Sql(SqlType::BigInt), false),
            ("begin_time", TIME, true),
            ("finish_time", TIME, false),
        ],
    )
}

fn checkpoint_table() -> Table {
    own_table(
        "kindex_checkpoint",
        &["kind"],
        &[
            ("kind", NAME, true),
            ("res_version", RESOURCE_VERSION, true),
            ("update_time", TIME, true),
        ],
    )
}

fn quarantine_table() -> Table {
    own_table(
        "kindex_quarantine",
        &["kind", "uid"],
        &[
            ("kind", NAME, true),
            ("uid", UID, true),
            ("namespace", NAME, true),
            ("name", NAME, true),
            ("res_version", RESOURCE_VERSION, true),
            ("reason", StorageType::Sql(SqlType::Text), true),
            // Not `Json`: what the database refuses as JSON must be storable here.
            ("json", StorageType::Sql(SqlType::LongText), true),
            ("first_time", TIME, true),
            ("last_time", TIME, true),
            ("attempts", StorageType::Sql(SqlType::Int), true),
        ],
    )
}

fn state_table() -> Table {
    own_table(
        "kindex_state",
        &["kind", "name"],
        &[
            ("kind", NAME, true),
            ("name", NAME, true),
            ("value", StorageType::Sql(SqlType::MediumText), true),
            ("update_time", TIME, true),
        ],
    )
}

/// How many changes of a kind there were. Whoever adds some holds its row until the commit: positions are committed
/// in their order.
fn feed_table() -> Table {
    own_table(
        "kindex_feed",
        &["kind"],
        &[
            ("kind", NAME, true),
            ("position", StorageType::Sql(SqlType::BigInt), true),
        ],
    )
}

fn changes_table() -> Table {
    own_table(
        "kindex_changes",
        &["kind", "position"],
        &[
            ("kind", NAME, true),
            ("position", StorageType::Sql(SqlType::BigInt), true),
            ("uid", UID, true),
            // Those before an update; a deletion leaves the row's own as they are.
            ("labels", StorageType::Sql(SqlType::MediumText), false),
            // A version that the cluster had when all changes up to this one were well known.
            ("cluster_version", RESOURCE_VERSION, false),
            ("change_time", TIME, true),
        ],
    )
}

/// The texts that rows had in another version of their kind. The uid comes early, since a row takes them with it.
fn converted_table() -> Table {
    own_table(
        "kindex_converted",
        &["kind", "uid", "group_ver", "res_version"],
        &[
            ("kind", NAME, true),
            ("uid", UID, true),
            ("group_ver", NAME, true),
            ("res_version", RESOURCE_VERSION, true),
            ("convert_time", TIME, true),
            // As in a history table.
            ("encoding", StorageType::Sql(SqlType::Int), true),
            ("payload", StorageType::Bytes, true),
        ],
    )
}

/// The references on archived objects: who uses them. The objects of a cluster have theirs as finalizers.
fn reference_table() -> Table {
    let table = own_table(
        "kindex_reference",
        &["kind", "uid", "name"],
        &[
            ("kind", NAME, true),
            ("uid", UID, true),
            ("name", FINALIZER, true),
            ("holder_kind", NAME, true),
            ("holder_group", NAME, true),
            ("holder_uid", UID, true),
            ("place_time", TIME, true),
            // Unknown where it came with the object from the cluster.
            ("placed_by", StorageType::Sql(SqlType::Text), false),
        ],
    );
    let key = TableKey {
        name: KeyName::parse("kindex_reference_holder").expect("Kindex's own keys have valid names"),
        columns: vec![fixed_name("holder_uid")],
        unique: false,
    };
    Table {
        keys: vec![key],
        ..table
    }
}

/// The archived objects that were deleted while others use them: their rows stay until the last reference goes.
fn tombstone_table() -> Table {
    own_table(
        "kindex_tombstone",
        &["kind", "uid"],
        &[("kind", NAME, true), ("uid", UID, true), ("request_time", TIME, true)],
    )
}

/// The last change of each object of the kinds with `events = true`, and that it is gone for a while after it went.
fn outbox_table() -> Table {
    let table = own_table(
        "kindex_outbox",
        &["kind", "uid"],
        &[
            ("kind", NAME, true),
            ("uid", UID, true),
            ("position", StorageType::Sql(SqlType::BigInt), true),
            ("namespace", NAME, true),
            ("name", NAME, true),
            ("deletion_timestamp", TIME, false),
            ("erase_time", TIME, false),
        ],
    );
    let key = |column: &'static str| TableKey {
        name: KeyName::parse(&format!("kindex_outbox_{column}")).expect("Kindex's own keys have valid names"),
        columns: vec![fixed_name("kind"), fixed_name(column)],
        unique: false,
    };
    Table {
        keys: vec![key("position"), key("erase_time")],
        ..table
    }
}

/// Where the transactions end that changed the outbox. A database that was restored from a backup has other stamps than
/// the one that it was copied from.
fn outbox_mark_table() -> Table {
    own_table(
        "kindex_outbox_mark",
        &["kind", "position"],
        &[
            ("kind", NAME, true),
            ("position", StorageType::Sql(SqlType::BigInt), true),
            // 64 random bits.
            ("stamp", StorageType::Sql(SqlType::BigInt), true),
            ("mark_time", TIME, true),
        ],
    )
}

/// How many changes of a kind there were. Whoever adds some holds its row until the commit: positions are committed in
/// their order.
fn outbox_counter_table() -> Table {
    own_table(
        "kindex_outbox_counter",
        &["kind"],
        &[
            ("kind", NAME, true),
            ("position", StorageType::Sql(SqlType::BigInt), true),
            // How far the objects have entries that were there before `events = true`.
            ("fill_after", StorageType::Sql(SqlType::BigInt), false),
            ("fill_time", TIME, false),
        ],
    )
}

fn own_table(name: &str, primary_key: &[&str], columns: &[(&str, StorageType, bool)]) -> Table {
    let columns = columns.iter().map(|&(name, ty, required)| TableColumn {
        name: fixed_name(name),
        ty,
        required,
    });
    Table {
        name: TableName::parse(name).expect("Kindex's own tables have valid names"),
        columns: columns.collect(),
        primary_key: primary_key.iter().copied().map(fixed_name).collect(),
        keys: Vec::new(),
    }
}
