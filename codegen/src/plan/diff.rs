//! From two schemas to the steps between them. Pure and total; nothing is guessed: a column has another name only where
//! the declaration says which one it had.

use std::collections::{BTreeMap, BTreeSet};

use super::schema::{DesiredSchema, Existing, ExistingColumn, Extracted, Schema};
use crate::dialect::{Filled, Form, Step, StorageType, Table, TableColumn, TableKey};
use crate::model::{ColumnName, KeyName, SqlType};

/// The steps that lead from `old` to `new`, in an order in which each of them can be taken. Statements come first and
/// fills last, so that a table has its final form when the long part begins.
pub fn diff(old: &Schema, new: &DesiredSchema) -> Vec<Step> {
    let kept: BTreeSet<_> = new.tables.iter().map(|table| &table.name).collect();
    let gone = old.tables.keys().filter(|name| !kept.contains(name));
    let mut steps: Vec<Step> = gone.cloned().map(Step::DropTable).collect();
    let mut fills = Vec::new();
    for table in &new.tables {
        let Some(existing) = old.tables.get(&table.name) else {
            steps.push(Step::CreateTable(table.clone()));
            continue;
        };
        let change = TableChange::between(existing, table, new);
        steps.extend(change.statements());
        fills.extend(change.fill());
    }
    steps.extend(fills);
    steps
}

/// A table that is there and stays.
struct TableChange<'a> {
    old: &'a Existing,
    new: &'a Table,
    columns: Vec<ColumnChange<'a>>,
}

/// A wanted column and what is done about it.
struct ColumnChange<'a> {
    new: &'a TableColumn,
    /// Where its values come from; `None` for a base column.
    extracted: Option<&'a Extracted>,
    /// What it was made of: name and column. `None` if it is new.
    old: Option<(&'a ColumnName, &'a ExistingColumn)>,
    action: ColumnAction,
}

/// What is done about a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnAction {
    /// It was not there.
    Added,
    /// Its type is the same.
    Kept,
    /// Its type changes around its values.
    Changed,
    /// No engine turns its values into those of the new type, but every row's JSON still has them.
    MadeAnew,
}

impl<'a> TableChange<'a> {
    fn between(old: &'a Existing, new: &'a Table, desired: &'a DesiredSchema) -> Self {
        let columns = new.columns.iter().map(|column| {
            let extracted = desired.extracted(&new.name, &column.name);
            let declared = extracted.and_then(|extracted| extracted.was.as_ref());
            // A rename that was planned before leaves its `was` in the declaration for a while.
            let renamed = declared.and_then(|was| old.columns.get_key_value(was));
            let found = renamed.or_else(|| old.columns.get_key_value(&column.name));
            ColumnChange {
                new: column,
                extracted,
                old: found,
                action: found.map_or(ColumnAction::Added, |(_, old)| {
                    action_on(old, column, extracted.is_some())
                }),
            }
        });
        Self {
            old,
            new,
            columns: columns.collect(),
        }
    }

    fn statements(&self) -> Vec<Step> {
        let table = &self.new.name;
        let (dropped, renamed, added) = self.keys();
        let mut steps = Vec::new();
        steps.extend(dropped.into_iter().map(|key| Step::DropKey {
            table: table.clone(),
            key: key.clone(),
        }));
        steps.extend(self.dropped_columns().map(|column| Step::DropColumn {
            table: table.clone(),
            column: column.clone(),
        }));
        steps.extend(self.columns.iter().filter_map(|change| self.rename(change)));
        steps.extend(self.columns.iter().filter_map(|change| self.change(change)));
        steps.extend(self.added_columns());
        steps.extend(renamed.into_iter().map(|(from, key)| Step::RenameKey {
            table: table.clone(),
            from: from.clone(),
            key: key.clone(),
        }));
        steps.extend(added.into_iter().map(|key| Step::AddKey {
            table: table.clone(),
            key: key.clone(),
        }));
        steps
    }

    /// Columns that nothing is made of, and those that are made anew.
    fn dropped_columns(&self) -> impl Iterator<Item = &'a ColumnName> + '_ {
        let used: BTreeSet<_> = self
            .columns
            .iter()
            .filter(|change| change.action != ColumnAction::MadeAnew)
            .filter_map(|change| Some(change.old?.0))
            .collect();
        self.old.columns.keys().filter(move |name| !used.contains(name))
    }

    fn rename(&self, change: &ColumnChange<'_>) -> Option<Step> {
        let (from, _) = change.old.filter(|_| change.action != ColumnAction::MadeAnew)?;
        (*from != change.new.name).then(|| Step::RenameColumn {
            table: self.new.name.clone(),
            from: from.clone(),
            to: change.new.name.clone(),
        })
    }

    fn change(&self, change: &ColumnChange<'_>) -> Option<Step> {
        let (_, old) = change.old.filter(|_| change.action == ColumnAction::Changed)?;
        Some(Step::ChangeColumn {
            table: self.new.name.clone(),
            column: change.new.clone(),
            from: old.form.clone(),
            keys: self.keys_over(change),
        })
    }

    /// The keys over a column that are there before and after the change.
    fn keys_over(&self, change: &ColumnChange<'_>) -> Vec<TableKey> {
        let (dropped, _, _) = self.keys();
        let kept = self.old.keys.iter().filter(|(name, _)| !dropped.contains(name));
        let kept = kept.map(|(name, key)| TableKey {
            name: name.clone(),
            columns: self.names_after(&key.columns).into_iter().cloned().collect(),
            unique: key.unique,
        });
        kept.filter(|key| key.columns.contains(&change.new.name)).collect()
    }

    fn added_columns(&self) -> impl Iterator<Item = Step> + '_ {
        let before = [None].into_iter().chain(self.columns.iter().map(Some));
        let pairs = self.columns.iter().zip(before);
        let added = pairs.filter(|(change, _)| matches!(change.action, ColumnAction::Added | ColumnAction::MadeAnew));
        added.map(|(change, before)| Step::AddColumn {
            table: self.new.name.clone(),
            column: change.new.clone(),
            after: before.map(|before| before.new.name.clone()),
        })
    }

    /// Keys to drop, to rename and to add. A key over a column that is made anew is made anew as well.
    fn keys(&self) -> (Vec<&'a KeyName>, Vec<(&'a KeyName, &'a TableKey)>, Vec<&'a TableKey>) {
        let mut unused: BTreeMap<&KeyName, (Vec<&ColumnName>, bool)> = BTreeMap::new();
        for (name, key) in &self.old.keys {
            unused.insert(name, (self.names_after(&key.columns), key.unique));
        }
        let is_same = |key: &TableKey, (columns, unique): &(Vec<&ColumnName>, bool)| {
            key.unique == *unique && key.columns.iter().eq(columns.iter().copied())
        };
        let mut wanting = Vec::new();
        for key in &self.new.keys {
            if unused.get(&key.name).is_some_and(|old| is_same(key, old)) {
                unused.remove(&key.name);
            } else {
                wanting.push(key);
            }
        }
        let (mut renamed, mut added) = (Vec::new(), Vec::new());
        for key in wanting {
            // The new name may be that of a key which is dropped first.
            let same = unused.iter().find(|(_, old)| is_same(key, old));
            match same.map(|(name, _)| *name) {
                Some(name) => {
                    unused.remove(name);
                    renamed.push((name, key));
                }
                None => added.push(key),
            }
        }
        (unused.into_keys().collect(), renamed, added)
    }

    /// What the columns of an old key are called when columns have their new names; empty if one of them is gone.
    fn names_after(&self, columns: &[ColumnName]) -> Vec<&'a ColumnName> {
        let after = columns.iter().map(|column| {
            let mut kept = self
                .columns
                .iter()
                .filter(|change| change.action != ColumnAction::MadeAnew);
            let change = kept.find(|change| change.old.is_some_and(|(name, _)| name == column))?;
            Some(&change.new.name)
        });
        after.collect::<Option<_>>().unwrap_or_default()
    }

    fn fill(&self) -> Option<Step> {
        let columns: Vec<Filled> = self.columns.iter().filter_map(ColumnChange::filled).collect();
        (!columns.is_empty()).then(|| Step::Fill {
            table: self.new.name.clone(),
            columns,
        })
    }
}

impl ColumnChange<'_> {
    /// A column is filled when it is new, read from elsewhere, or holds more than it could before.
    fn filled(&self) -> Option<Filled> {
        let path = self.extracted?.path.clone();
        let old_path = self.old.and_then(|(_, old)| old.path.as_ref());
        let is_unsigned = self.extracted?.is_unsigned;
        let is_widened = is_unsigned && self.old.is_some_and(|(_, old)| old.is_narrow);
        let moved_from = old_path.filter(|old| **old != path).cloned();
        (moved_from.is_some() || is_widened || self.action != ColumnAction::Kept).then(|| Filled {
            column: self.new.name.clone(),
            path,
            moved_from,
        })
    }
}

/// A base column holds what nothing else holds and is never made anew.
fn action_on(old: &ExistingColumn, new: &TableColumn, is_extracted: bool) -> ColumnAction {
    let same_type = old.form == Form::Ours(new.ty);
    if same_type && old.required == new.required {
        return ColumnAction::Kept;
    }
    let is_wider = match (&old.form, new.ty) {
        (Form::Ours(StorageType::Sql(from)), StorageType::Sql(to)) => from.widens_to(to),
        (Form::Ours(StorageType::Version), StorageType::Sql(SqlType::BigIntUnsigned)) => true,
        _ => false,
    };
    if is_extracted && !is_wider && !same_type {
        return ColumnAction::MadeAnew;
    }
    ColumnAction::Changed
}
