//! The tables that a select reads, in the order that its lead says.

use kindex_model::kind::Key;
use kindex_model::tables::Side;
use kindex_query::select::{Label, Select};

use crate::dialect::WalkedKey;
use crate::statements::writer::{Lead, Writer};

/// Labels that are joined at most: MariaDB joins 61 tables, and the engines try out orders long before. The others are
/// looked up for each row.
const JOINED_MAX: usize = 8;

impl Writer {
    pub(crate) fn from(&mut self, select: &Select) {
        match self.lead {
            Lead::Engine => self.by_engine(&select.labels),
            Lead::Label { number, through } => self.by_label(&select.labels, number, through),
            Lead::Key(key) => self.by_key(select, key),
        }
    }

    /// Joins and no subqueries: both engines then may start from a label's key.
    fn by_engine(&mut self, labels: &[Label]) {
        let table = self.tables.main;
        self.push(&format!("FROM [{table}] AS t"));
        for (number, label) in labels.iter().enumerate().take(JOINED_MAX) {
            self.join_label("JOIN", number, label, "t.[uid]");
        }
    }

    /// One label first, then the others of its object, then the object.
    fn by_label(&mut self, labels: &[Label], first: usize, through: Option<&Key>) {
        let (table, uid) = (self.tables.side(Side::Labels), format!("l{first}.[obj_uid]"));
        let walk = self.spelling().walk(WalkedKey::Named(&self.tables.label_key()));
        self.push(&format!("FROM [{table}] AS l{first}{walk}"));
        let others = labels.iter().enumerate().take(JOINED_MAX);
        for (number, label) in others.filter(|(number, _)| *number != first) {
            self.join_label(self.spelling().join_in_order(), number, label, &uid);
        }
        self.join_object(through.map(|key| key.name), &uid);
        self.next_condition();
        self.label(&format!("l{first}"), &labels[first]);
    }

    /// The entries of a key first, then the labels of their objects, then the objects. The conditions that the key
    /// serves are written for its entries and once more for the objects, which is what they are about.
    fn by_key(&mut self, select: &Select, key: &Key) {
        let (table, walk) = (self.tables.main, self.spelling().walk(WalkedKey::Named(key.name)));
        self.push(&format!("FROM [{table}] AS k{walk}"));
        for (number, label) in select.labels.iter().enumerate().take(JOINED_MAX) {
            self.join_label(self.spelling().join_in_order(), number, label, "k.[uid]");
        }
        self.join_object(None, "k.[uid]");
        for (column, value) in select.fixed_columns().unwrap_or_default() {
            if key.columns.contains(&column) {
                self.next_condition();
                self.push(&format!("k.[{column}] = "));
                self.bind(value);
            }
        }
    }

    /// The labels that [`from`](Self::from) leaves out.
    pub(crate) fn unjoined<'a>(&self, labels: &'a [Label]) -> impl Iterator<Item = &'a Label> + use<'a> {
        let lead = self.lead;
        let leads = move |number| matches!(lead, Lead::Label { number: first, .. } if first == number);
        let beyond = labels.iter().enumerate().skip(JOINED_MAX);
        beyond
            .filter(move |(number, _)| !leads(*number))
            .map(|(_, label)| label)
    }

    /// The object of a uid that was found before, by a key that is named.
    fn join_object(&mut self, key: Option<&str>, uid: &str) {
        let table = self.tables.main;
        let uid_key = self.tables.uid_key();
        let walk = self.spelling().walk(WalkedKey::Named(key.unwrap_or(&uid_key)));
        let join = self.spelling().join_in_order();
        self.push(&format!(" {join} [{table}] AS t{walk} ON t.[uid] = {uid}"));
    }

    fn join_label(&mut self, join: &str, number: usize, label: &Label, uid: &str) {
        let (table, alias) = (self.tables.side(Side::Labels), format!("l{number}"));
        self.push(&format!(
            " {join} [{table}] AS {alias} ON {alias}.[obj_uid] = {uid} AND "
        ));
        self.label(&alias, label);
    }

    fn label(&mut self, alias: &str, label: &Label) {
        self.exactly(alias, "key", &label.key);
        self.push(" AND ");
        self.exactly_one_of(alias, "value", &label.values);
    }
}
