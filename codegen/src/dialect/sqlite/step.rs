//! The steps of migrations.

use super::table;
use super::types::catalog_type;
use crate::dialect::{Form, Step, TableColumn, TableKey};
use crate::model::TableName;

/// Keys are created beside their table and cannot be renamed. A type that widens is the same word here, or the column
/// is made anew and filled: no statement changes a type.
pub(super) fn expand(step: Step) -> Vec<Step> {
    match step {
        Step::CreateTable(mut table) => {
            let keys = std::mem::take(&mut table.keys);
            let name = table.name.clone();
            let add = |key| Step::AddKey {
                table: name.clone(),
                key,
            };
            let keys: Vec<Step> = keys.into_iter().map(add).collect();
            [Step::CreateTable(table)].into_iter().chain(keys).collect()
        }
        Step::ChangeColumn {
            table,
            column,
            from,
            keys,
        } if is_another_word(&from, &column) => made_anew(&table, column, keys),
        Step::ChangeColumn { .. } => Vec::new(),
        Step::RenameKey { table, from, key } => {
            let drop = Step::DropKey {
                table: table.clone(),
                key: from,
            };
            vec![drop, Step::AddKey { table, key }]
        }
        Step::DropTable(_)
        | Step::DropKey { .. }
        | Step::DropColumn { .. }
        | Step::RenameColumn { .. }
        | Step::AddColumn { .. }
        | Step::AddKey { .. }
        | Step::Fill { .. } => vec![step],
    }
}

fn is_another_word(from: &Form, column: &TableColumn) -> bool {
    match from {
        Form::Ours(from) => catalog_type(*from) != catalog_type(column.ty),
        Form::Foreign(_) => false,
    }
}

/// No column goes while a key has it. What a key was called before is renamed later.
fn made_anew(table: &TableName, column: TableColumn, keys: Vec<TableKey>) -> Vec<Step> {
    let drop_keys = keys.iter().map(|key| Step::DropKey {
        table: table.clone(),
        key: key.name.clone(),
    });
    let mut steps: Vec<Step> = drop_keys.collect();
    steps.push(Step::DropColumn {
        table: table.clone(),
        column: column.name.clone(),
    });
    steps.push(Step::AddColumn {
        table: table.clone(),
        column,
        after: None,
    });
    steps.extend(keys.into_iter().map(|key| Step::AddKey {
        table: table.clone(),
        key,
    }));
    steps
}

/// The statement of a step; `None` for one that has none.
///
/// # Panics
/// If the step is one that [`expand`] takes apart.
pub(super) fn statement(step: &Step) -> Option<String> {
    let table = step.table();
    let change = match step {
        Step::CreateTable(table) => return Some(table::create_table(table)),
        Step::DropTable(table) => return Some(format!("DROP TABLE IF EXISTS `{table}`;")),
        Step::DropKey { key, .. } => return Some(format!("DROP INDEX IF EXISTS `{key}`;")),
        Step::AddKey { key, .. } => return Some(table::key(table, key)),
        Step::Fill { .. } => return None,
        Step::DropColumn { column, .. } => format!("DROP COLUMN `{column}`"),
        Step::RenameColumn { from, to, .. } => format!("RENAME COLUMN `{from}` TO `{to}`"),
        Step::AddColumn { column, .. } => format!("ADD COLUMN {}", table::column(column)),
        Step::ChangeColumn { .. } | Step::RenameKey { .. } => unreachable!("`expand` leaves none"),
    };
    Some(format!("ALTER TABLE `{table}` {change};"))
}
