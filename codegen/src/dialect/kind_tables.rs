//! The storage contract: the tables of a kind, with their columns and keys. How they are spelled is not known here.

use super::table::{NAME, RESOURCE_VERSION, Section, StorageType, TIME, Table, TableColumn, TableKey, UID, fixed_name};
use crate::model::{BaseColumn, ColumnName, HistoryColumn, Key, Kind, SideColumn, SideTable, SqlType, TableName};

/// Main table, labels, annotations. A history is Kindex's own addition.
pub(crate) const TABLES_OF_A_KIND: usize = 1 + SideTable::ALL.len();

/// The tables of a kind under its name.
pub(super) fn section(kind: &Kind) -> Section {
    Section {
        heading: kind.name.to_string(),
        doc: kind.doc.clone(),
        tables: kind_tables(kind),
    }
}

/// The tables of a kind in order of creation.
pub(crate) fn kind_tables(kind: &Kind) -> Vec<Table> {
    let extracted = kind.columns.iter().map(|column| (column.name.clone(), column.sql));
    tables(&kind.table, extracted, kind.keys.clone(), kind.history)
}

/// The tables of a kind by the facts that a declaration decides.
pub fn tables(
    main: &TableName,
    extracted: impl IntoIterator<Item = (ColumnName, SqlType)>,
    keys: Vec<Key>,
    history: bool,
) -> Vec<Table> {
    let sides = SideTable::ALL.map(|side| side_table(main, side));
    [main_table(main, extracted, keys)]
        .into_iter()
        .chain(sides)
        .chain(history.then(|| history_table(main)))
        .collect()
}

/// The table with one row for each object of the kind, in order of arrival. A declared key ends in `uid`: rows of equal
/// values are walked in that order, and a page begins where the one before it ended.
fn main_table(name: &TableName, extracted: impl IntoIterator<Item = (ColumnName, SqlType)>, keys: Vec<Key>) -> Table {
    let extracted = extracted.into_iter().map(|(name, sql)| TableColumn {
        name,
        ty: StorageType::Sql(sql),
        required: false,
    });
    let uid = TableKey {
        unique: true,
        ..key(name, "uid", vec![BaseColumn::Uid.into()])
    };
    let declared = keys.into_iter().map(|key| TableKey {
        name: key.name,
        columns: key.columns.into_iter().chain([BaseColumn::Uid.into()]).collect(),
        unique: false,
    });
    Table {
        name: name.clone(),
        columns: BaseColumn::LEADING
            .map(base_column)
            .into_iter()
            .chain(extracted)
            .chain(BaseColumn::TRAILING.map(base_column))
            .collect(),
        primary_key: vec![BaseColumn::Seq.into()],
        keys: [uid].into_iter().chain(declared).collect(),
    }
}

/// The table with one row for each label or annotation of each object of the kind.
fn side_table(main: &TableName, side: SideTable) -> Table {
    let name = main
        .beside(side.suffix())
        .expect("lower leaves room for the side tables' names");
    let side_key =
        |suffix, columns: &[SideColumn]| key(&name, suffix, columns.iter().copied().map(side_column_name).collect());
    let mut keys = vec![side_key("uid", &[SideColumn::ObjUid])];
    if side == SideTable::Labels {
        // Who looks for a label finds the uids in the key, in their order.
        keys.push(side_key(
            "key_value",
            &[SideColumn::Key, SideColumn::Value, SideColumn::ObjUid],
        ));
    }
    Table {
        name,
        columns: side_columns(side).into(),
        primary_key: vec![side_column_name(SideColumn::Id)],
        keys,
    }
}

/// The table with one row for each version of each object, of a kind that keeps them. Versions of an object lie side by
/// side, the last one at the end; the key by time is for those who ask what happened when, and for cleaning up.
fn history_table(main: &TableName) -> Table {
    let name = main
        .beside(HistoryColumn::SUFFIX)
        .expect("lower leaves room for longer names");
    let time = key(&name, "seen_time", vec![fixed_name(HistoryColumn::SeenTime.name())]);
    Table {
        name,
        columns: history_columns().into(),
        primary_key: HistoryColumn::PRIMARY_KEY
            .map(|column| fixed_name(column.name()))
            .into(),
        keys: vec![time],
    }
}

/// The columns of a history table, the same for every kind.
pub(crate) fn history_columns() -> [TableColumn; 6] {
    HistoryColumn::ALL.map(|column| TableColumn {
        name: fixed_name(column.name()),
        ty: match column {
            HistoryColumn::ObjUid => UID,
            HistoryColumn::Branch => StorageType::Sql(SqlType::BigInt),
            HistoryColumn::ResVersion => RESOURCE_VERSION,
            HistoryColumn::SeenTime => TIME,
            HistoryColumn::Encoding => StorageType::Sql(SqlType::TinyInt),
            HistoryColumn::Payload => StorageType::Bytes,
        },
        required: true,
    })
}

/// The columns of a side table, the same for every kind.
pub(crate) fn side_columns(side: SideTable) -> [TableColumn; 4] {
    SideColumn::ALL.map(|column| TableColumn {
        name: side_column_name(column),
        ty: side_type(side, column),
        required: column != SideColumn::Value,
    })
}

fn base_column(column: BaseColumn) -> TableColumn {
    TableColumn {
        name: column.into(),
        ty: base_type(column),
        required: column.required(),
    }
}

/// What a base column holds.
pub const fn base_type(column: BaseColumn) -> StorageType {
    match column {
        BaseColumn::Uid => UID,
        BaseColumn::GroupVer | BaseColumn::Namespace | BaseColumn::Name => NAME,
        BaseColumn::ResVersion => RESOURCE_VERSION,
        BaseColumn::CreateTime | BaseColumn::UpdateTime | BaseColumn::DeleteTime | BaseColumn::EvictedTime => TIME,
        BaseColumn::Proto => StorageType::Bytes,
        BaseColumn::Json => StorageType::Json,
        BaseColumn::ContentHash => StorageType::Hash,
        BaseColumn::Seq => StorageType::RowId,
    }
}

/// What a column of a side table holds. A key has at most a 253-character prefix, a slash and a 63-character name; a
/// label's value has at most 63 characters, and all annotations of an object together at most 256 KiB.
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/>
const fn side_type(side: SideTable, column: SideColumn) -> StorageType {
    match (column, side) {
        (SideColumn::Id, _) => StorageType::RowId,
        (SideColumn::ObjUid, _) => UID,
        (SideColumn::Key, _) => StorageType::Sql(SqlType::VarChar(317)),
        (SideColumn::Value, SideTable::Labels) => StorageType::Sql(SqlType::VarChar(63)),
        (SideColumn::Value, SideTable::Annotations) => StorageType::Sql(SqlType::MediumText),
    }
}

fn side_column_name(column: SideColumn) -> ColumnName {
    fixed_name(column.name())
}

fn key(table: &TableName, suffix: &str, columns: Vec<ColumnName>) -> TableKey {
    TableKey {
        name: table
            .key(suffix)
            .expect("lower leaves room for the keys that every table has"),
        columns,
        unique: false,
    }
}
