//! The steps of migrations.

use super::table;
use crate::dialect::Step;

/// Keys are created beside their table and cannot be renamed, and a type that widens is the same word here.
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
