//! What taking up the tables of other programs asks of an engine, and what it is told. Text alone: `migration::adopt`
//! asks and runs. Knows no engine.

use std::fmt;

use crate::live::{LiveColumn, LiveTable};

/// The SQL of an engine in which other programs than Kindex have databases, and older ones of ours tables.
pub(super) trait AdoptionSql: Send + Sync {
    /// All tables of the program's own schema in order; the first line that cannot be read otherwise.
    fn definitions<'a>(&self, schema: &'a str) -> Result<Vec<Definition<'a>>, String>;

    /// Whether a statement creates one of the tables that Kindex keeps for itself.
    fn is_of_kindex(&self, statement: &str) -> bool;

    /// What leads from the live table to the definition; `None` where nothing is lacking. `extracted`
    /// says which columns can be read anew from the stored text, and so may be dropped on the way.
    fn change(
        &self,
        live: Option<&LiveTable>,
        wanted: &Definition<'_>,
        extracted: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Change>, Vec<AdoptionBlocker>>;

    /// A table is there under another name.
    fn other_spelling(&self, found: &str, wanted: &str) -> AdoptionBlocker;

    /// What is to be asked about the values of a column.
    fn value_checks(&self, table: &LiveTable, live: &LiveColumn, wanted: &ColumnDefinition<'_>) -> Vec<ValueCheck>;

    /// Asks for a key that an object has more than once: uid, key, how often, and how many such keys there are.
    fn twice(&self, table: &str) -> String;

    /// The answer to [`twice`](Self::twice).
    fn found_twice(&self, table: &str, uid: &str, key: &str, rows: i64, pairs: i64) -> AdoptionBlocker;

    /// Asks for uid and text of rows that may hold no object of that uid, as far as the server can tell, in order of
    /// uid. Parameter, where it goes on: the last uid before.
    fn unsure_rows(&self, table: &str, goes_on: bool) -> String;

    /// So many rows hold no object, this one among them.
    fn no_object(&self, table: &str, uid: &str, why: &str, rows: usize) -> AdoptionBlocker;

    /// Asks for the statement by which the server would create a table, in the second column.
    fn show(&self, table: &str) -> String;

    /// What gives a table of this form the check of a new one; `None` where nothing is lacking.
    fn renewal(&self, live: &str, wanted: &Definition<'_>) -> Option<Renewal>;

    /// Asks for uid, namespace and name of the rows that break the new check.
    fn breaking(&self, renewal: &Renewal) -> String;

    /// The statement by which people look at a row of a table.
    fn look_up(&self, table: &str) -> String;
}

/// A table as the program wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition<'a> {
    /// Its name.
    pub(super) table: &'a str,
    /// The statement that creates it where it is absent.
    pub(super) create: &'a str,
    /// Its columns in order.
    pub(super) columns: Vec<ColumnDefinition<'a>>,
    /// The columns of its primary key.
    pub(super) primary_key: Vec<&'a str>,
    /// Its other keys in order.
    pub(super) keys: Vec<KeyDefinition<'a>>,
    /// Its constraints, as they stand in the statement.
    pub(super) constraints: Vec<&'a str>,
}

/// A column as the program wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnDefinition<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// As it stands in the statement: name, type and the rest.
    pub(super) text: &'a str,
    /// Its type, in the words of the emitter.
    pub(super) ty: &'a str,
    /// Whether it is NOT NULL.
    pub(super) required: bool,
}

/// A key as the program wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyDefinition<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// As it stands in the statement.
    pub(super) text: &'a str,
    /// Its columns in order.
    pub(super) columns: Vec<&'a str>,
    /// Whether no two rows may have the same values.
    pub(super) unique: bool,
}

/// One statement of an adoption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Which table.
    pub(super) table: String,
    /// `create table model`, `change table model`.
    pub(super) title: String,
    /// The statement.
    pub(super) sql: String,
}

/// What gives a table its check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Renewal {
    /// Which table.
    pub(super) table: String,
    /// The statement.
    pub(super) sql: String,
    /// The condition of the new check.
    pub(super) condition: String,
}

impl Renewal {
    pub(super) fn title(&self) -> String {
        format!("renew the check of {}", self.table)
    }
}

/// Values that may not fit.
pub(super) struct ValueCheck {
    /// Asks how many rows have such a value, and for one of them.
    pub(super) question: String,
    /// What is wrong where there is one.
    pub(super) blocker: Box<dyn Fn(&Example<'_>) -> AdoptionBlocker + Send + Sync>,
}

/// A row by which a reason is shown.
pub(super) struct Example<'a> {
    pub(super) rows: i64,
    pub(super) first: &'a str,
}

/// A reason that keeps a table from being adopted: where, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptionBlocker {
    /// `model.json` or `model_labels`.
    place: String,
    why: String,
    remedy: String,
}

impl AdoptionBlocker {
    pub(super) fn new(place: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            why: why.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for AdoptionBlocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n      {}", self.place, self.why, self.remedy)
    }
}

/// Rows that keep tables from getting their checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRows(pub Vec<BrokenTable>);

/// A table with rows that break its check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenTable {
    /// The table.
    pub table: String,
    /// How many rows there are.
    pub rows: usize,
    /// Uid, namespace and name of the first of them.
    pub first: Vec<(String, String)>,
    /// The statement that shows one of them.
    pub look_up: String,
}

impl fmt::Display for BrokenRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "everything else is done, but tables keep their old check because rows hold texts that are not JSON, which \
             somebody wrote past Kindex",
        )?;
        for broken in &self.0 {
            let BrokenTable { table, rows, .. } = broken;
            let noun = if *rows == 1 { "row" } else { "rows" };
            write!(f, "\n  {table}.json: {rows} {noun}")?;
            for (uid, name) in &broken.first {
                write!(f, "\n      uid `{uid}`, {name}")?;
            }
            if broken.first.len() < *rows {
                f.write_str("\n      …")?;
            }
            write!(
                f,
                "\n      correct the text, or remove the row with its labels and annotations, and let \
                 `kindex backfill` store what the cluster has: {}",
                broken.look_up
            )?;
        }
        Ok(())
    }
}
