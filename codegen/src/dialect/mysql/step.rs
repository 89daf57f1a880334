//! The steps of migrations.

use super::types::catalog_type;
use super::{online, table};
use crate::dialect::{Form, Step};

/// One statement changes a table whatever the step is; none is needed for a type that has the same name here.
pub(super) fn expand(step: Step) -> Vec<Step> {
    match &step {
        Step::ChangeColumn {
            column,
            from: Form::Ours(from),
            ..
        } if *from != column.ty && catalog_type(*from) == catalog_type(column.ty) => Vec::new(),
        Step::ChangeColumn { .. }
        | Step::CreateTable(_)
        | Step::DropTable(_)
        | Step::DropKey { .. }
        | Step::DropColumn { .. }
        | Step::RenameColumn { .. }
        | Step::AddColumn { .. }
        | Step::RenameKey { .. }
        | Step::AddKey { .. }
        | Step::Fill { .. } => vec![step],
    }
}

/// The statement of a step; `None` for one that has none.
///
/// An algorithm is named where no server of the dialect has to copy the table, so that one which would copy all the
/// same refuses instead.
pub(super) fn statement(step: &Step) -> Option<String> {
    let change = match step {
        Step::CreateTable(table) => return Some(table::create_table(table)),
        Step::DropTable(table) => return Some(format!("DROP TABLE IF EXISTS `{table}`;")),
        Step::Fill { .. } => return None,
        Step::DropKey { key, .. } => format!("DROP KEY `{key}`"),
        Step::DropColumn { column, .. } => format!("DROP COLUMN `{column}`"),
        Step::RenameColumn { from, to, .. } => format!("RENAME COLUMN `{from}` TO `{to}`"),
        Step::ChangeColumn { column, .. } => format!("MODIFY COLUMN {}", table::column(column)),
        Step::AddColumn { column, after, .. } => {
            let place = after
                .as_ref()
                .map_or("FIRST".to_owned(), |name| format!("AFTER `{name}`"));
            format!("ADD COLUMN {} {place}", table::column(column))
        }
        Step::RenameKey { from, key, .. } => format!("RENAME KEY `{from}` TO `{}`", key.name),
        Step::AddKey { key, .. } => format!("ADD {}", table::key(key)),
    };
    let clause = online::clause(step).map_or_else(String::new, |clause| format!(", {clause}"));
    Some(format!("ALTER TABLE `{}` {change}{clause};", step.table()))
}
