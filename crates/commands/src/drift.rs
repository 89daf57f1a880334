//! What a database has against what crds.toml wants: tables, columns, keys and collations, each
//! difference with both sides, and the steps between them. Pure: the database was read before.

use std::collections::BTreeSet;

use kindex_codegen::dialect::{Dialect, Form, Step, StorageType, Table};
use kindex_codegen::lower::Lowered;
use kindex_codegen::model::{ColumnName, KeyName, TableName};
use kindex_codegen::plan::{DesiredSchema, Existing, ExistingColumn, ExistingKey, Schema, diff};
use kindex_store::{LiveColumn, LiveKey, LiveTable};
use serde::{Serialize, Serializer};

/// What begins the names of Kindex's own tables, which are the program's and not the declaration's.
const OWN: &str = "kindex_";

/// How a database differs from a declaration.
pub(crate) struct Drift {
    dialect: &'static dyn Dialect,
    /// In order of the wanted tables; tables of kinds that are gone come last.
    pub(crate) differences: Vec<Difference>,
    /// Tables whose texts compare otherwise than ours.
    collated: Vec<String>,
    /// From the database to the declaration.
    steps: Vec<Step>,
}

/// What there is of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriftState {
    /// The database lacks it.
    Missing,
    /// crds.toml does not want it.
    Extra,
    /// Both have it, each in its own way.
    Different,
}

impl DriftState {
    /// As people and programs read it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Different => "different",
        }
    }
}

impl Serialize for DriftState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One difference.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub(crate) table: String,
    /// `table`, `collation`, `column budget`, `key model_owner`.
    pub(crate) object: String,
    pub(crate) state: DriftState,
    /// What the database has; empty where it is missing.
    pub(crate) database: String,
    /// What crds.toml wants; empty where it wants none.
    pub(crate) wanted: String,
}

/// A statement of the way to the declaration; a fill has none.
#[derive(Serialize)]
pub(crate) struct Statement {
    pub(crate) step: String,
    pub(crate) sql: Option<String>,
}

impl Drift {
    /// Compares. Tables that are no kind's, now or as the lock remembers, are none of ours.
    pub(crate) fn between(live: &[LiveTable], lowered: &Lowered, dialect: &'static dyn Dialect) -> Self {
        let desired = DesiredSchema::of(&lowered.model.kinds);
        let remembered = Schema::of(&lowered.lock.structure);
        let known: BTreeSet<&TableName> = desired
            .tables
            .iter()
            .map(|table| &table.name)
            .chain(remembered.tables.keys())
            .collect();
        let ours = |table: &&LiveTable| {
            let name = TableName::parse(&table.name).ok();
            !table.name.starts_with(OWN) && name.is_some_and(|name| known.contains(&name))
        };
        let live: Vec<&LiveTable> = live.iter().filter(ours).collect();
        let mut drift = Self {
            dialect,
            differences: Vec::new(),
            collated: Vec::new(),
            steps: diff(&schema(&live, &desired, dialect), &desired),
        };
        for table in &desired.tables {
            match live.iter().find(|live| live.name == table.name.as_str()) {
                Some(live) => drift.compare(live, table),
                None => drift.note(table.name.as_str(), "table", "", "a table"),
            }
        }
        let extra = live
            .iter()
            .filter(|live| desired.tables.iter().all(|table| live.name != table.name.as_str()));
        for table in extra {
            drift.note(&table.name, "table", "a table", "");
        }
        drift
    }

    fn note(&mut self, table: &str, object: &str, database: &str, wanted: &str) {
        let state = match (database, wanted) {
            ("", _) => DriftState::Missing,
            (_, "") => DriftState::Extra,
            _ => DriftState::Different,
        };
        self.differences.push(Difference {
            table: table.to_owned(),
            object: object.to_owned(),
            state,
            database: database.to_owned(),
            wanted: wanted.to_owned(),
        });
    }

    fn compare(&mut self, live: &LiveTable, wanted: &Table) {
        self.compare_collation(live);
        for column in &wanted.columns {
            let wants = described(&self.dialect.catalog_type(column.ty), column.required);
            let object = format!("column {}", column.name);
            match live.columns.iter().find(|live| live.name == column.name.as_str()) {
                None => self.note(&live.name, &object, "", &wants),
                Some(found) => {
                    let has = described(&found.ty, found.required);
                    if has != wants {
                        self.note(&live.name, &object, &has, &wants);
                    }
                }
            }
        }
        let wanted_columns: Vec<&str> = wanted.columns.iter().map(|column| column.name.as_str()).collect();
        for column in &live.columns {
            if !wanted_columns.contains(&column.name.as_str()) {
                let has = described(&column.ty, column.required);
                self.note(&live.name, &format!("column {}", column.name), &has, "");
            }
        }
        self.compare_keys(live, wanted);
    }

    fn compare_collation(&mut self, live: &LiveTable) {
        let Some(ours) = self.dialect.collation() else {
            return;
        };
        let of_columns = live.columns.iter().filter_map(|column| column.collation.as_deref());
        let found: BTreeSet<&str> = live.collation.as_deref().into_iter().chain(of_columns).collect();
        if found.iter().any(|collation| *collation != ours) {
            let found: Vec<&str> = found.into_iter().collect();
            self.note(&live.name, "collation", &found.join(", "), ours);
            self.collated.push(live.name.clone());
        }
    }

    fn compare_keys(&mut self, live: &LiveTable, wanted: &Table) {
        let primary: Vec<&str> = wanted.primary_key.iter().map(ColumnName::as_str).collect();
        if live.primary_key != primary {
            self.note(
                &live.name,
                "primary key",
                &live.primary_key.join(", "),
                &primary.join(", "),
            );
        }
        for key in &wanted.keys {
            let columns: Vec<&str> = key.columns.iter().map(ColumnName::as_str).collect();
            let wants = listed(&columns, key.unique);
            let found = live.keys.iter().find(|live| live.name == key.name.as_str());
            let has = found.map_or_else(String::new, live_key);
            if has != wants {
                self.note(&live.name, &format!("key {}", key.name), &has, &wants);
            }
        }
        for key in &live.keys {
            if wanted.keys.iter().all(|wanted| wanted.name.as_str() != key.name) {
                self.note(&live.name, &format!("key {}", key.name), &live_key(key), "");
            }
        }
    }

    /// The way from the database to the declaration, in an order in which it can be gone.
    pub(crate) fn statements(&self) -> Vec<Statement> {
        let collated = self.collated.iter().map(|table| Statement {
            step: format!("collate {table}"),
            sql: self.dialect.collate(table),
        });
        let steps = self
            .dialect
            .spell(&self.steps)
            .into_iter()
            .map(|(step, sql)| Statement {
                step: step.to_string(),
                sql,
            });
        collated.chain(steps).collect()
    }
}

fn described(ty: &str, required: bool) -> String {
    let null = if required { " not null" } else { "" };
    format!("{ty}{null}")
}

fn live_key(key: &LiveKey) -> String {
    let columns: Vec<&str> = key.columns.iter().map(String::as_str).collect();
    listed(&columns, key.unique)
}

/// `namespace, name`, `unique uid`
fn listed(columns: &[&str], unique: bool) -> String {
    let unique = if unique { "unique " } else { "" };
    format!("{unique}{}", columns.join(", "))
}

/// The tables as the planner takes them. What has no name of ours cannot be planned with, and is only told.
fn schema(live: &[&LiveTable], desired: &DesiredSchema, dialect: &dyn Dialect) -> Schema {
    let mut schema = Schema::default();
    for table in live {
        let Ok(name) = TableName::parse(&table.name) else {
            continue;
        };
        let known = desired.tables.iter().find(|table| table.name == name);
        let columns = table.columns.iter().filter_map(|column| {
            let name = ColumnName::parse(&column.name).ok()?;
            let ours = known.and_then(|table| table.columns.iter().find(|wanted| wanted.name == name));
            let existing = existing(column, ours.map(|wanted| wanted.ty), dialect);
            Some((name, existing))
        });
        let keys = table.keys.iter().filter_map(|key| {
            let columns = key.columns.iter().map(|column| ColumnName::parse(column).ok());
            let key_form = ExistingKey {
                columns: columns.collect::<Option<_>>()?,
                unique: key.unique,
            };
            Some((KeyName::parse(&key.name).ok()?, key_form))
        });
        let existing = Existing {
            columns: columns.collect(),
            keys: keys.collect(),
        };
        schema.tables.insert(name, existing);
    }
    schema
}

fn existing(column: &LiveColumn, wanted: Option<StorageType>, dialect: &dyn Dialect) -> ExistingColumn {
    let form: Form = dialect.form(&column.ty, wanted);
    ExistingColumn {
        form,
        required: column.required,
        path: None,
        is_narrow: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_reads_the_words_that_people_read() {
        for (state, word) in [
            (DriftState::Missing, "missing"),
            (DriftState::Extra, "extra"),
            (DriftState::Different, "different"),
        ] {
            assert_eq!(state.as_str(), word);
            assert_eq!(serde_json::to_value(state).expect("a text"), word);
        }
    }
}
