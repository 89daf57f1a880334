//! What the generator says a step costs, held against the servers: each takes the step in the way that is claimed, and
//! none takes it in a cheaper one.

use kindex_codegen::dialect::mysql::online::{Algorithm, Engine, algorithm};
use kindex_codegen::dialect::{Dialect as _, Form, MySql, Step, StorageType, TableColumn, TableKey, tables};
use kindex_codegen::model::{ColumnName, Key, KeyName, SqlType, TableName};
use sqlx::mysql::MySqlConnection;
use sqlx::{AssertSqlSafe, Executor};

use crate::schema::server::{Product, on_servers};

on_servers!(each_step_costs_what_is_claimed, each_planned_statement_is_taken);

/// Columns of the table that is changed, in its order; the first has a key.
const COLUMNS: [(&str, SqlType); 10] = [
    ("keyed", SqlType::VarChar(255)),
    ("short", SqlType::VarChar(40)),
    ("long", SqlType::VarChar(100)),
    ("text", SqlType::Text),
    ("small", SqlType::Int),
    ("flag", SqlType::Boolean),
    ("moment", SqlType::DateTime(0)),
    ("price", SqlType::Decimal(10, 2)),
    ("spare", SqlType::BigInt),
    ("other", SqlType::TinyInt),
];

fn table() -> TableName {
    TableName::parse("subject").expect("a name")
}

fn column(name: &str) -> ColumnName {
    ColumnName::parse(name).expect("a name")
}

fn key(name: &str, of: &str) -> TableKey {
    TableKey {
        name: KeyName::parse(name).expect("a name"),
        columns: vec![column(of)],
        unique: false,
    }
}

fn widened(name: &str, to: SqlType) -> Step {
    let (_, from) = COLUMNS.iter().find(|(known, _)| *known == name).expect("a column");
    Step::ChangeColumn {
        table: table(),
        column: TableColumn {
            name: column(name),
            ty: StorageType::Sql(to),
            required: false,
        },
        from: Form::Ours(StorageType::Sql(*from)),
        keys: Vec::new(),
    }
}

fn added(name: &str, ty: SqlType, after: &str) -> Step {
    Step::AddColumn {
        table: table(),
        column: TableColumn {
            name: column(name),
            ty: StorageType::Sql(ty),
            required: false,
        },
        after: Some(column(after)),
    }
}

/// Every class of statement that a migration has for a table that is there.
fn steps() -> Vec<Step> {
    let table = table();
    vec![
        added("fresh", SqlType::BigInt, "keyed"),
        added("fresh", SqlType::LongText, "other"),
        Step::DropColumn {
            table: table.clone(),
            column: column("spare"),
        },
        Step::RenameColumn {
            table: table.clone(),
            from: column("spare"),
            to: column("kept"),
        },
        Step::RenameColumn {
            table: table.clone(),
            from: column("keyed"),
            to: column("kept"),
        },
        widened("keyed", SqlType::VarChar(512)),
        widened("short", SqlType::VarChar(63)),
        widened("short", SqlType::VarChar(64)),
        widened("long", SqlType::VarChar(300)),
        widened("long", SqlType::Text),
        widened("text", SqlType::MediumText),
        widened("small", SqlType::BigInt),
        widened("flag", SqlType::TinyInt),
        widened("flag", SqlType::Int),
        widened("other", SqlType::SmallInt),
        widened("moment", SqlType::DateTime(6)),
        widened("price", SqlType::Decimal(12, 4)),
        Step::RenameKey {
            table: table.clone(),
            from: KeyName::parse("subject_keyed").expect("a name"),
            key: key("subject_kept", "keyed"),
        },
        Step::AddKey {
            table: table.clone(),
            key: key("subject_long", "long"),
        },
        Step::DropKey {
            table,
            key: KeyName::parse("subject_keyed").expect("a name"),
        },
    ]
}

/// The table as a migration finds it, with a row.
async fn make(connection: &mut MySqlConnection) {
    let columns = COLUMNS.map(|(name, sql)| (column(name), sql));
    let declared = Key {
        name: KeyName::parse("subject_keyed").expect("a name"),
        columns: vec![column("keyed")],
    };
    let main = tables(&table(), columns, vec![declared], false).remove(0);
    for statement in [
        "DROP TABLE IF EXISTS subject".to_owned(),
        MySql.create_table(&main),
        "INSERT INTO subject (uid, group_ver, namespace, name, res_version, create_time, json, `keyed`) \
         VALUES ('u', 'g/v', 'n', 'n', 1, '2026-01-31 12:00:00', '{}', 'k')"
            .to_owned(),
    ] {
        let done = connection.execute(AssertSqlSafe(statement.clone())).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

async fn each_step_costs_what_is_claimed(product: Product) {
    let Some((_database, mut connection)) = product.connect().await else {
        return;
    };
    let engine = match product {
        Product::MariaDb => Engine::MariaDb,
        Product::MySql => Engine::MySql,
    };
    let mut wrong = Vec::new();
    for step in steps() {
        let claimed = algorithm(&step, engine).expect("the table stays");
        let taken = cheapest(&mut connection, &step).await;
        if taken != claimed {
            wrong.push(format!(
                "{step} ({}): claimed {claimed:?}, taken as {taken:?}",
                step.detail(|ty, required| MySql.column_type(ty, required))
            ));
        }
    }
    assert!(wrong.is_empty(), "{product:?}:\n{}", wrong.join("\n"));
}

/// The first algorithm that the server takes the step with.
async fn cheapest(connection: &mut MySqlConnection, step: &Step) -> Algorithm {
    let statement = MySql.statement(step).expect("a statement");
    let bare = statement.split(", ALGORITHM").next().expect("a start");
    let bare = bare.trim_end_matches(';');
    for algorithm in [Algorithm::Instant, Algorithm::InPlace, Algorithm::Copy] {
        make(connection).await;
        let attempt = format!("{bare}, {}", algorithm.clause());
        match connection.execute(AssertSqlSafe(attempt.clone())).await {
            Ok(_) => return algorithm,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("ALGORITHM") || text.contains("LOCK"), "{attempt}: {text}");
            }
        }
    }
    panic!("{bare} is taken in no way");
}

/// The clause in a planned statement is one that both servers take.
async fn each_planned_statement_is_taken(product: Product) {
    let Some((_database, mut connection)) = product.connect().await else {
        return;
    };
    for step in steps() {
        make(&mut connection).await;
        for (step, statement) in MySql.spell(&[step]) {
            let statement = statement.expect("a statement");
            let done = connection.execute(AssertSqlSafe(statement.clone())).await;
            done.unwrap_or_else(|error| panic!("{product:?}, {step}: {statement}: {error}"));
        }
    }
}
