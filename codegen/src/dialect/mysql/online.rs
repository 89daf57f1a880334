//! What a step costs on the servers of this dialect: whether a table is copied, and whether it can be written
//! meanwhile. Held against MySQL 9 and MariaDB 10.11, each step on both, by `tests/tests/sql/plan/online.rs`: manuals
//! leave out that a CHECK makes MySQL copy.

use crate::dialect::{Form, RowFormat, RowFormatsMax, Step, StorageType, Verb};
use crate::model::SqlType;

/// Changes of columns between two times that MySQL writes a table anew.
/// <https://dev.mysql.com/doc/refman/9.7/en/innodb-online-ddl-operations.html>
pub(super) const ROW_FORMATS_MAX: Option<RowFormatsMax> = Some(RowFormatsMax {
    engine: Engine::MySql.name(),
    count: 255,
});

/// A server that takes this dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// MySQL 9.
    MySql,
    /// MariaDB 10.11.
    MariaDb,
}

impl Engine {
    /// Both.
    pub const ALL: [Self; 2] = [Self::MySql, Self::MariaDb];

    /// The product's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
        }
    }
}

/// How a server changes a table, the cheapest way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Only the data dictionary changes.
    Instant,
    /// Rows stay where they are, and may be written meanwhile.
    InPlace,
    /// Every row is copied, and none can be written meanwhile.
    Copy,
}

impl Algorithm {
    /// The clause that asks for it.
    pub const fn clause(self) -> &'static str {
        match self {
            Self::Instant => "ALGORITHM=INSTANT",
            Self::InPlace => "ALGORITHM=INPLACE, LOCK=NONE",
            Self::Copy => "ALGORITHM=COPY",
        }
    }
}

/// The cheapest way in which `engine` takes the step on a kind's main table; `None` where no rows of a table that stays
/// are concerned.
pub fn algorithm(step: &Step, engine: Engine) -> Option<Algorithm> {
    match step {
        Step::CreateTable(_) | Step::DropTable(_) | Step::Fill { .. } => None,
        Step::AddColumn { .. } | Step::DropColumn { .. } => Some(Algorithm::Instant),
        Step::RenameColumn { .. } => Some(rename(engine)),
        Step::ChangeColumn { column, from, .. } => Some(change(from, column.ty, engine)),
        Step::RenameKey { .. } => Some(match engine {
            Engine::MySql => Algorithm::InPlace,
            Engine::MariaDb => Algorithm::Instant,
        }),
        Step::AddKey { .. } | Step::DropKey { .. } => Some(Algorithm::InPlace),
    }
}

/// MySQL copies a table that has a CHECK, as every main table has for its `json`, when a column gets another name.
pub const fn rename(engine: Engine) -> Algorithm {
    match engine {
        Engine::MySql => Algorithm::Copy,
        Engine::MariaDb => Algorithm::Instant,
    }
}

/// MySQL copies a table that has a CHECK for every change of a type. MariaDB needs no copy where values keep their
/// form: the length of a VARCHAR takes one byte up to 63 characters and two from 64 on.
pub const fn change(from: &Form, to: StorageType, engine: Engine) -> Algorithm {
    let (Form::Ours(StorageType::Sql(from)), StorageType::Sql(to), Engine::MariaDb) = (from, to, engine) else {
        return Algorithm::Copy;
    };
    match (*from, to) {
        (SqlType::VarChar(from), SqlType::VarChar(to)) if from <= to && (from >= 64) == (to >= 64) => {
            Algorithm::Instant
        }
        (SqlType::Boolean, SqlType::TinyInt) => Algorithm::Instant,
        _ => Algorithm::Copy,
    }
}

/// The clause that a statement names: the one for the slower of both servers, so that either takes it. None where one
/// of them would copy, since a copy that is asked for would be made on the other one as well.
pub(super) fn clause(step: &Step) -> Option<&'static str> {
    let slowest = Engine::ALL.iter().filter_map(|engine| algorithm(step, *engine)).max()?;
    match slowest {
        Algorithm::Instant | Algorithm::InPlace => Some(slowest.clause()),
        Algorithm::Copy => None,
    }
}

/// The servers that copy a table when a column gets another name.
pub(super) fn renaming_copies() -> Vec<&'static str> {
    copying(rename)
}

/// The servers that copy a table when a column gets another type.
pub(super) fn changing_copies(types: Option<(SqlType, SqlType)>) -> Vec<&'static str> {
    copying(|engine| {
        types.map_or(Algorithm::Copy, |(from, to)| {
            change(&Form::Ours(StorageType::Sql(from)), StorageType::Sql(to), engine)
        })
    })
}

fn copying(algorithm: impl Fn(Engine) -> Algorithm) -> Vec<&'static str> {
    let engines = Engine::ALL.into_iter();
    let copying = engines.filter(|engine| algorithm(*engine) == Algorithm::Copy);
    copying.map(Engine::name).collect()
}

/// An instant change of columns leaves the rows as they are, and MySQL copies for a new name and a new type.
pub(super) fn row_format(verb: Verb, statement: &str) -> RowFormat {
    match verb {
        Verb::AddColumn | Verb::DropColumn if is_instant(statement) => RowFormat::Another,
        Verb::CreateTable
        | Verb::DropTable
        | Verb::AddColumn
        | Verb::DropColumn
        | Verb::RenameColumn
        | Verb::ChangeColumn => RowFormat::Anew,
        Verb::DropKey | Verb::RenameKey | Verb::AddKey | Verb::Fill => RowFormat::Kept,
    }
}

fn is_instant(statement: &str) -> bool {
    statement.to_ascii_uppercase().contains(Algorithm::Instant.clause())
}
