//! The facts of the lock that say what the database looks like once every planned migration has run. A build carries
//! them over as they are: only `kindex plan` records new ones, together with the migration that leads there.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::model::{ColumnName, ColumnType, HistoryColumn, KeyName, Kind, KindName, SideTable, SqlType, TableName};
use crate::source::Span;

/// Kinds with their extracted columns, keys and histories. What every kind has besides is not written down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Structure {
    /// `kind <Kind> <group>/<version> <plural> <table>`
    pub kinds: BTreeMap<KindName, LockedKind>,
    /// `column <table> <column> <path> <SQL type>`
    pub columns: BTreeMap<TableName, BTreeMap<ColumnName, LockedColumn>>,
    /// `unsigned <table> <column>`, of columns that hold unsigned numbers up to 2^64 - 1. Columns of locks without this
    /// line hold NULL for numbers from 2^63 on.
    pub unsigned: BTreeSet<(TableName, ColumnName)>,
    /// `key <table> <key> <columns>`
    pub keys: BTreeMap<TableName, BTreeMap<KeyName, Vec<ColumnName>>>,
    /// `history <table>`, of kinds that keep their versions.
    pub histories: BTreeSet<TableName>,
    /// `migration <number> <hash>`: the last planned migration, which leads to these facts.
    pub seal: Option<Seal>,
}

/// Ties the facts to the migration that leads to them: git may merge the lines of two branches that each planned one,
/// and the sum of both is what no migration leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// The migration's number.
    pub number: u32,
    /// Hash of its checksum and of the facts.
    pub hash: String,
    /// The line that says so; `None` for one of this run.
    pub span: Option<Span>,
}

/// A kind as it was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedKind {
    /// `michelangelo.api/v2`.
    pub api_version: String,
    /// `pipelineruns`.
    pub plural: String,
    /// `pipelinerun`.
    pub table: TableName,
}

/// A column as it was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedColumn {
    /// JSON path, dotted.
    pub path: String,
    /// SQL type as in `crds.toml`.
    pub sql: SqlType,
}

impl Structure {
    /// The structure of these kinds.
    pub fn of(kinds: &[Kind]) -> Self {
        let mut structure = Self::default();
        for kind in kinds {
            structure.add(kind);
        }
        structure
    }

    fn add(&mut self, kind: &Kind) {
        let table = &kind.table;
        let columns = kind.columns.iter().map(|column| {
            let locked = LockedColumn {
                path: column.path.json_dotted(),
                sql: column.sql,
            };
            (column.name.clone(), locked)
        });
        self.columns.insert(table.clone(), columns.collect());
        let unsigned = kind.columns.iter().filter(|column| column.ty == ColumnType::UInt64);
        let unsigned = unsigned.map(|column| (table.clone(), column.name.clone()));
        self.unsigned.extend(unsigned);
        let keys = kind.keys.iter().map(|key| (key.name.clone(), key.columns.clone()));
        self.keys.insert(table.clone(), keys.collect());
        if kind.history {
            self.histories.insert(table.clone());
        }
        let locked = LockedKind {
            api_version: kind.api_version(),
            plural: kind.plural.clone(),
            table: table.clone(),
        };
        self.kinds.insert(kind.name.clone(), locked);
    }

    /// Ties the facts to the migration of that number and checksum.
    pub fn seal(&mut self, number: u32, checksum: &str) {
        self.seal = Some(Seal {
            number,
            hash: self.hash_with(checksum),
            span: None,
        });
    }

    /// Whether these are the facts that were tied to the migration.
    pub fn is_sealed_by(&self, number: u32, checksum: &str) -> bool {
        let seal = self.seal.as_ref();
        seal.is_some_and(|seal| seal.number == number && seal.hash == self.hash_with(checksum))
    }

    fn hash_with(&self, checksum: &str) -> String {
        let mut lines = self.facts();
        lines.sort();
        let digest = Sha256::new()
            .chain_update(checksum)
            .chain_update(lines.join("\n"))
            .finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Takes the fact of a line in, if it is one of these.
    pub(super) fn read(&mut self, fact: &str, words: &[&str], span: Span) -> Option<()> {
        match (fact, words) {
            ("migration", [number, hash]) => {
                // A second one is left from a merge and spoils the first.
                let number = number.parse().ok().filter(|_| self.seal.is_none())?;
                self.seal = Some(Seal {
                    number,
                    hash: (*hash).to_owned(),
                    span: Some(span),
                });
            }
            ("kind", [kind, api_version, plural, table]) => {
                let locked = LockedKind {
                    api_version: (*api_version).to_owned(),
                    plural: (*plural).to_owned(),
                    table: main_table(table)?,
                };
                self.kinds.insert(KindName::parse(kind).ok()?, locked);
            }
            ("column", [table, column, path, sql]) => {
                let locked = LockedColumn {
                    path: (*path).to_owned(),
                    sql: SqlType::parse(sql)?,
                };
                let of_table = self.columns.entry(TableName::parse(table).ok()?).or_default();
                of_table.insert(ColumnName::parse(column).ok()?, locked);
            }
            ("unsigned", [table, column]) => {
                let column = (TableName::parse(table).ok()?, ColumnName::parse(column).ok()?);
                self.unsigned.insert(column);
            }
            ("key", [table, key, columns]) => {
                let columns = columns.split(',').map(|column| ColumnName::parse(column).ok());
                let of_table = self.keys.entry(TableName::parse(table).ok()?).or_default();
                of_table.insert(KeyName::parse(key).ok()?, columns.collect::<Option<_>>()?);
            }
            ("history", [table]) => {
                self.histories.insert(TableName::parse(table).ok()?);
            }
            _ => return None,
        }
        Some(())
    }

    /// The lines of the lock, in no order that matters.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = self.facts();
        let seal = self.seal.iter();
        lines.extend(seal.map(|seal| format!("migration {} {}", seal.number, seal.hash)));
        lines
    }

    fn facts(&self) -> Vec<String> {
        let columns = each(&self.columns);
        let columns =
            columns.map(|(table, column, locked)| format!("column {table} {column} {} {}", locked.path, locked.sql));
        let keys = each(&self.keys).map(|(table, key, columns)| {
            let columns: Vec<&str> = columns.iter().map(ColumnName::as_str).collect();
            format!("key {table} {key} {}", columns.join(","))
        });
        let unsigned = self.unsigned.iter();
        let unsigned = unsigned.map(|(table, column)| format!("unsigned {table} {column}"));
        let histories = self.histories.iter().map(|table| format!("history {table}"));
        let kinds = self.kinds.iter().map(|(kind, locked)| {
            let LockedKind {
                api_version,
                plural,
                table,
            } = locked;
            format!("kind {kind} {api_version} {plural} {table}")
        });
        let of_columns = columns.chain(unsigned).chain(keys);
        of_columns.chain(histories).chain(kinds).collect()
    }
}

/// A table with room for the names that are derived from it.
fn main_table(text: &str) -> Option<TableName> {
    let table = TableName::parse(text).ok()?;
    let derived = [
        table.beside(SideTable::Labels.suffix()).ok()?.key("key_value"),
        table
            .beside(HistoryColumn::SUFFIX)
            .ok()?
            .key(HistoryColumn::SeenTime.name()),
    ];
    derived.iter().all(Result::is_ok).then_some(table)
}

fn each<Name, Fact>(
    facts: &BTreeMap<TableName, BTreeMap<Name, Fact>>,
) -> impl Iterator<Item = (&TableName, &Name, &Fact)> {
    let tables = facts.iter();
    tables.flat_map(|(table, facts)| facts.iter().map(move |(name, fact)| (table, name, fact)))
}
