//! Random pairs of schemas: tables, columns, types, keys, histories, and a second one that grew out of the first. Equal
//! seeds give equal pairs.

use kindex_codegen::dialect::{self, Form, StorageType, Table};
use kindex_codegen::model::{ColumnName, Key, KeyName, SqlType, TableName};
use kindex_codegen::plan::{DesiredSchema, Existing, Extracted, Schema};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const TABLES: [&str; 3] = ["alpha", "beta", "gamma"];
const NAMES: [&str; 8] = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
const TYPES: [SqlType; 13] = [
    SqlType::VarChar(40),
    SqlType::VarChar(63),
    SqlType::VarChar(255),
    SqlType::VarChar(512),
    SqlType::Text,
    SqlType::Int,
    SqlType::BigInt,
    SqlType::BigIntUnsigned,
    SqlType::Boolean,
    SqlType::TinyInt,
    SqlType::DateTime(0),
    SqlType::DateTime(6),
    SqlType::Decimal(12, 2),
];

/// A kind by what changes its tables.
#[derive(Clone, Debug)]
struct Shape {
    table: &'static str,
    history: bool,
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    name: &'static str,
    sql: SqlType,
    path: u32,
    has_key: bool,
    was: Option<&'static str>,
    /// As releases made it that knew signed numbers alone.
    is_narrow: bool,
}

/// What was there and what is wanted.
pub(super) struct Pair {
    pub(super) old: DesiredSchema,
    pub(super) new: DesiredSchema,
}

/// The pair of that seed.
pub(super) fn pair(seed: u64) -> Pair {
    let mut random = StdRng::seed_from_u64(seed);
    let tables = TABLES.iter().filter(|_| random.random_bool(0.7)).copied();
    let tables: Vec<&str> = tables.collect();
    let old: Vec<Shape> = tables.iter().map(|table| shape(table, &mut random)).collect();
    let mut new: Vec<Shape> = Vec::new();
    for table in TABLES {
        match old.iter().find(|shape| shape.table == table) {
            Some(shape) if random.random_bool(0.9) => new.push(evolved(shape, &mut random)),
            None if random.random_bool(0.5) => new.push(wide(shape(table, &mut random))),
            Some(_) | None => {}
        }
    }
    Pair {
        old: wanted(&old),
        new: wanted(&new),
    }
}

/// A schema that was made as wanted.
pub(super) fn made(wanted: &DesiredSchema) -> Schema {
    let mut schema = Schema::default();
    for table in &wanted.tables {
        let mut existing = Existing::of(table.clone());
        for (name, column) in &mut existing.columns {
            column.path = wanted
                .extracted(&table.name, name)
                .map(|extracted| extracted.path.clone());
            column.is_narrow = column.path.is_some() && column.form == Form::Ours(StorageType::Version);
        }
        schema.tables.insert(table.name.clone(), existing);
    }
    schema
}

fn shape(table: &'static str, random: &mut StdRng) -> Shape {
    let names = NAMES.iter().filter(|_| random.random_bool(0.5)).copied();
    let names: Vec<&str> = names.collect();
    Shape {
        table,
        history: random.random_bool(0.3),
        columns: names.into_iter().map(|name| column(name, random)).collect(),
    }
}

/// As it is made now.
fn wide(mut shape: Shape) -> Shape {
    for column in &mut shape.columns {
        column.is_narrow = false;
    }
    shape
}

fn column(name: &'static str, random: &mut StdRng) -> Column {
    let sql = *TYPES.choose(random).expect("some");
    Column {
        name,
        sql,
        is_narrow: sql == SqlType::BigIntUnsigned && random.random_bool(0.5),
        path: random.random_range(0..3),
        has_key: random.random_bool(0.4),
        was: None,
    }
}

/// Each column stays, changes in one way or another, or goes; new ones come between them.
fn evolved(old: &Shape, random: &mut StdRng) -> Shape {
    let mut columns: Vec<Column> = Vec::new();
    let free = |columns: &[Column], random: &mut StdRng| {
        let taken = |name: &str| columns.iter().chain(&old.columns).any(|column| column.name == name);
        let free: Vec<&'static str> = NAMES.into_iter().filter(|name| !taken(name)).collect();
        free.choose(random).copied()
    };
    for column in &old.columns {
        let mut column = Column {
            is_narrow: false,
            ..column.clone()
        };
        match random.random_range(0..10) {
            0 => continue,
            1 | 2 => column.sql = *TYPES.choose(random).expect("some"),
            3 => column.has_key = !column.has_key,
            4 => column.path += 1,
            5 | 6 => {
                if let Some(name) = free(&columns, random) {
                    column.was = Some(column.name);
                    column.name = name;
                }
                if random.random_bool(0.3) {
                    column.sql = *TYPES.choose(random).expect("some");
                }
            }
            _ => {}
        }
        columns.push(column);
        if random.random_bool(0.2)
            && let Some(name) = free(&columns, random)
        {
            columns.push(Column {
                is_narrow: false,
                ..self::column(name, random)
            });
        }
    }
    Shape {
        table: old.table,
        history: old.history != random.random_bool(0.2),
        columns,
    }
}

fn wanted(shapes: &[Shape]) -> DesiredSchema {
    let mut wanted = DesiredSchema::default();
    for shape in shapes {
        let table = TableName::parse(shape.table).expect("a name");
        wanted.tables.extend(tables(&table, shape));
        let extracted = shape.columns.iter().map(|column| {
            let extracted = Extracted {
                path: format!("spec.p{}", column.path),
                was: column.was.map(name),
                is_unsigned: column.sql == SqlType::BigIntUnsigned,
            };
            (name(column.name), extracted)
        });
        wanted.extracted.insert(table, extracted.collect());
    }
    wanted
}

fn tables(table: &TableName, shape: &Shape) -> Vec<Table> {
    let columns = shape.columns.iter().map(|column| (name(column.name), column.sql));
    let keyed = shape
        .columns
        .iter()
        .filter(|column| column.has_key && column.sql.key_bytes().is_some());
    let keys = keyed.map(|column| Key {
        name: KeyName::parse(&format!("{table}_{}", column.name)).expect("a name"),
        columns: vec![name(column.name)],
    });
    let mut tables = dialect::tables(table, columns, keys.collect(), shape.history);
    for column in shape.columns.iter().filter(|column| column.is_narrow) {
        let mut all = tables[0].columns.iter_mut();
        let narrow = all.find(|found| found.name == name(column.name)).expect("a column");
        narrow.ty = StorageType::Version;
    }
    tables
}

fn name(text: &str) -> ColumnName {
    ColumnName::parse(text).expect("a name")
}
