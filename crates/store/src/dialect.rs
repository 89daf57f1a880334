//! The seam between the store and an engine's SQL: one trait for each concern, one small method for each difference.
//! Knows no table, no driver and no engine.
//!
//! # Notation
//! Everybody above an engine writes one SQL: names in brackets as in `[uid]`, a parameter as `?`, and what engines
//! differ in comes from [`Spelling`]. The engine turns brackets and parameters into its own when the statement leaves
//! ([`Notation::spell`]), so that quotes and numbered parameters are known in one place.
//!
//! # Another engine
//! It implements these traits in a folder of its own, in files of the same names. PostgreSQL's numbered parameters are
//! `spell`'s affair. [`ConditionSql`] alone spells lists, which may be `= ANY (ARRAY[…])` of as many parameters; one
//! that is bound as one parameter would be a variant of [`super::driver::Param`], which other engines bind value by
//! value. An upsert that gives back what it found is [`WriteSql`]'s. Statements on tables that are part of a
//! transaction need no more than [`SchemaChangeSql::take_lock`] says, since a step is noted in the transaction that it
//! runs in. The driver handles `COPY`: rows leave through [`super::driver::Driver::execute`] in one place of the
//! batch.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use kindex_model::kind::{Column, Comparison};
use kindex_model::value::Value;
use kindex_query::pattern::Pattern;
use kindex_query::select::Direction;

use crate::adoption::AdoptionSql;
use crate::statement::Statement;

/// The engines' SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
}

/// All that is asked of an engine's SQL.
pub(super) trait Spelling: Notation + ReadSql + ConditionSql + WriteSql + CatalogSql + SchemaChangeSql {}

impl<S: Notation + ReadSql + ConditionSql + WriteSql + CatalogSql + SchemaChangeSql> Spelling for S {}

/// Properties of the engine as a whole.
pub(super) trait Notation: Send + Sync {
    fn dialect(&self) -> Dialect;

    /// The dialect's word, by which the program's schema and migrations are found. These are in the engine's own
    /// spelling.
    fn word(&self) -> &'static str;

    /// The products with this engine, as people know them.
    fn products(&self) -> &'static str;

    /// A text of ours in the engine's own spelling. No text of ours has brackets or question marks in quotes.
    fn spell(&self, text: &str) -> String;

    /// `2^bit` as a number of 64 bits, for a bit below 63: an engine may give the literals of a statement only 32.
    fn power_of_two(&self, bit: u32) -> String;
}

/// The key of a table that a statement walks. What an engine calls a primary key is its own affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkedKey<'k> {
    Primary,
    Named(&'k str),
}

/// Reading rows.
pub(super) trait ReadSql: Send + Sync {
    /// Selects a time so that [`super::driver::parse_time`] reads it.
    fn time(&self, column: &str) -> String;

    /// The same of a column by its name.
    fn time_text(&self, column: &str) -> String {
        self.time(&format!("[{column}]"))
    }

    /// What time it is, selected as by [`time`](Self::time).
    fn clock(&self) -> &'static str;

    /// Before a query: asks for its plan, a row for each step.
    fn explain(&self) -> &'static str;

    /// Asks how many rows each of these selects has: a row for each, which [`super::driver::Driver::entries`] reads.
    fn entries(&self, selects: &[String]) -> String;

    /// Ends a select whose rows no other writer may change before the transaction ends.
    fn lock(&self) -> &'static str;

    /// After a table: the key to walk.
    fn walk(&self, key: WalkedKey<'_>) -> String;

    /// Joins the table on the right to each row of the one on the left, and never the other way round.
    fn join_in_order(&self) -> &'static str;

    /// A column, so that no key on it is taken for selective, or for an order worth walking a table for.
    fn unkeyed(&self, column: &str) -> String;

    /// A column, by its name, has no value.
    fn is_null(&self, column: &str) -> String {
        format!("{} IS NULL", self.unkeyed(&format!("[{column}]")))
    }

    /// Whether a select has a row, or has none: before it and after it. Asked once for each row that the others find.
    fn exists(&self, present: bool) -> (&'static str, &'static str);

    /// Follows a column in an order. NULL counts as the smallest value: pages continue on that assumption.
    fn direction(&self, direction: Direction) -> &'static str;
}

/// A comparison as all engines spell it.
pub(super) const fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

/// Conditions on a column that is already in brackets, with their values. Texts are compared to the byte.
pub(super) trait ConditionSql: Send + Sync {
    /// The column has this text.
    fn equals(&self, column: &str, text: &str) -> Statement;

    /// The same of a column by its name, for a statement that is kept prepared. Parameters: the text, and how many
    /// bytes it has, which tell apart what a collation takes for equal.
    fn exactly(&self, column: &str) -> String;

    /// The column has one of at least two texts.
    fn one_of(&self, column: &str, texts: &[String]) -> Statement;

    /// As [`one_of`](Self::one_of), of at least one text and so that a key of the column finds them.
    fn keyed_one_of(&self, column: &str, texts: &[String]) -> Statement;

    /// By code points, compared by this [`sign`].
    fn ordered(&self, column: &str, sign: &str, text: &str) -> Statement;

    fn starts_with(&self, column: &str, prefix: &str) -> Statement;

    fn like(&self, column: &str, pattern: &Pattern) -> Statement;

    /// The column is a decimal integer within these bounds, and has no more than so many digits. Digits are compared as
    /// texts of one length, since engines differ in what they make of numbers that are too long.
    fn digits_within(&self, column: &str, digits_max: usize, bounds: RangeInclusive<u64>) -> Statement;

    /// The column is one of so many parameters, as the engine compares them: a collation may find other texts than
    /// these, and [`one_of`](Self::one_of) does not.
    fn value_in(&self, column: &str, values: usize) -> String;

    /// As [`value_in`](Self::value_in), with these values, in a statement that people are shown.
    fn value_among(&self, column: &str, values: Vec<Value>) -> Statement;

    /// `(a, b)`, by their names, is one of so many pairs of parameters.
    fn pair_in(&self, a: &str, b: &str, pairs: usize) -> String;
}

/// Writing rows. Columns and tables come without brackets.
pub(super) trait WriteSql: Send + Sync {
    /// Between an insert's rows and the assignments that replace a row with the same key.
    fn on_conflict(&self, key: &str) -> String;

    /// As [`on_conflict`](Self::on_conflict), whichever key it is that is there.
    fn on_any_conflict(&self) -> &'static str;

    /// The value that the insert came with.
    fn inserted(&self, column: &str) -> String;

    /// Ends an insert that leaves rows as they are whose key is there already.
    fn or_leave(&self, column: &str, key: &str) -> String;

    /// The beginning and the end of an insert that counts no row where one is there already.
    fn insert_or_leave(&self) -> (&'static str, &'static str);

    /// Deletes by a key that is named, as [`ReadSql::walk`] says.
    fn delete_from(&self, table: &str, key: WalkedKey<'_>) -> String;

    /// Sets columns of so many rows, each found by its place while it has a certain version. Parameters of
    /// each: place, version, values.
    fn update_many(&self, table: &str, columns: &[&Column], rows: usize) -> String;

    /// The time a moment after that of a column, or of another one where it has none; `None` where no server of the
    /// engine is a [node](super::driver::Limits::is_node) of a cluster.
    fn moment_after(&self, column: &str, otherwise: &str) -> Option<String>;
}

/// What the database has.
pub(super) trait CatalogSql: Send + Sync {
    /// Whether a table is there: a row or none. Parameter: table.
    fn has_table(&self) -> &'static str;

    /// Whether a column is there. Parameters: table, column.
    fn has_column(&self) -> &'static str;

    /// Whether a key is there. Parameters: table, key.
    fn has_key(&self) -> &'static str;

    /// All columns of all tables, in order: table, its collation, column, type, whether it is NOT NULL,
    /// whether it has a value by itself, its collation.
    fn all_columns(&self) -> &'static str;

    /// A type of [`all_columns`](Self::all_columns) in small letters, and in one form on all products and versions of
    /// the engine.
    fn plain_type(&self, ty: &str) -> String;

    /// All columns of all keys, in order: table, key, column, whether values are unique. A primary key has no name.
    fn all_keys(&self) -> &'static str;
}

/// Changing tables.
pub(super) trait SchemaChangeSql: Send + Sync {
    /// Takes the lock of the one who migrates, and says 1, or 0 once so many seconds have passed.
    /// `None` where every statement of a migration is a transaction that waits for the others anyway.
    fn take_lock(&self) -> Option<&'static str>;

    /// Whether this connection has that lock: 1 or 0.
    fn holds_lock(&self) -> &'static str;

    /// Before a statement that changes a table: it may wait only so long for the writers of the
    /// table, since all others wait behind it.
    fn limit_lock_wait(&self) -> Option<&'static str>;

    /// How databases of this engine are adopted that other programs than Kindex have; `None` where there are none.
    fn adoption(&self) -> Option<&'static dyn AdoptionSql>;
}

/// A condition or a piece of one, with its values.
pub(super) fn piece(sql: String, values: Vec<Value>) -> Statement {
    Statement { sql, values }
}

/// A condition with one text.
pub(super) fn text_piece(sql: String, text: String) -> Statement {
    piece(sql, vec![Value::Text(text)])
}

/// Numbers as texts of so many digits.
pub(super) fn padded_bounds(digits: usize, bounds: &RangeInclusive<u64>) -> [Value; 2] {
    [bounds.start(), bounds.end()].map(|bound| Value::Text(format!("{bound:0digits$}")))
}

/// Texts as values.
pub(super) fn text_values(texts: &[String]) -> Vec<Value> {
    texts.iter().cloned().map(Value::Text).collect()
}

/// A mark so many times, with commas between.
pub(super) fn marks(mark: &str, times: usize) -> String {
    let mut text = String::with_capacity((mark.len() + 1) * times);
    for index in 0..times {
        let comma = if index == 0 { "" } else { "," };
        write!(text, "{comma}{mark}").expect("a string takes any text");
    }
    text
}

/// As [`marks`], for a statement that people are shown.
pub(super) fn spaced_marks(mark: &str, times: usize) -> String {
    vec![mark; times].join(", ")
}

/// The text with every one of `special` written as `quote` says.
pub(super) fn escape(text: &str, special: &str, quote: impl Fn(char) -> String) -> String {
    text.chars()
        .map(|c| match special.contains(c) {
            true => quote(c),
            false => c.to_string(),
        })
        .collect()
}
