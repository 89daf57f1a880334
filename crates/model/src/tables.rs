//! The names of a kind's tables, and of the keys that every kind has.

use crate::kind::Kind;

/// What the side tables of a kind hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A row for each label.
    Labels,
    /// A row for each annotation.
    Annotations,
}

impl Side {
    /// `labels` or `annotations`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Annotations => "annotations",
        }
    }
}

/// The tables of a kind: all names begin with the main table's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    /// The table of objects.
    pub main: &'static str,
}

impl Tables {
    /// The unique key of the main table.
    pub fn uid_key(self) -> String {
        format!("{}_uid", self.main)
    }

    /// A side table.
    pub fn side(self, side: Side) -> String {
        format!("{}_{}", self.main, side.word())
    }

    /// The key by which a side table has the rows of an object.
    pub fn side_uid_key(self, side: Side) -> String {
        self.side(side) + "_uid"
    }

    /// The key by which the table of labels has the objects of a label.
    pub fn label_key(self) -> String {
        self.side(Side::Labels) + "_key_value"
    }

    /// The table of versions, where the kind keeps them.
    pub fn history(self) -> String {
        format!("{}_history", self.main)
    }
}

impl Kind {
    /// The names of its tables and their keys.
    pub const fn tables(&self) -> Tables {
        Tables { main: self.table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_begins_with_the_main_tables() {
        let run = Tables { main: "run" };
        let sides = [Side::Labels, Side::Annotations].map(|side| [run.side(side), run.side_uid_key(side)]);
        assert_eq!(
            sides.as_flattened(),
            ["run_labels", "run_labels_uid", "run_annotations", "run_annotations_uid"]
        );
        assert_eq!(
            [run.uid_key(), run.label_key(), run.history()],
            ["run_uid", "run_labels_key_value", "run_history"]
        );
    }
}
