//! How often a server changes the columns of a table without touching its rows: each row remembers under which form it
//! was written, and there may be room for so many forms only. Counted over all migrations, as a database meets them
//! that ran each.

use std::collections::BTreeMap;

use super::Found;
use super::code::Code;
use crate::diag::messages;
use crate::dialect::{Dialect, RowFormat};
use crate::plan::Script;
use crate::source::{FileId, Span};

/// Finds the first step of each table that a server of the dialect refuses, in its texts of all migrations in order.
pub(super) fn check<'t>(
    dialect: &dyn Dialect,
    migrations: impl Iterator<Item = (FileId, &'t str)>,
    found: &mut Vec<Found>,
) {
    let Some(most) = dialect.row_formats_max() else {
        return;
    };
    let mut changes: BTreeMap<&str, u32> = BTreeMap::new();
    for (file, text) in migrations {
        for block in Script::parse(text).blocks {
            let Some(verb) = block.verb else { continue };
            let count = changes.entry(block.table).or_default();
            match dialect.row_format(verb, &block.statement) {
                RowFormat::Anew => *count = 0,
                RowFormat::Another => *count += 1,
                RowFormat::Kept => continue,
            }
            if *count == most.count + 1 {
                let span = Span::new(file, block.range.clone());
                found.push(Found {
                    code: Code::K403,
                    diagnostic: messages::too_many_instant_changes(block.table, most, span),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MySql, Sqlite};
    use crate::source::Sources;

    const ADD: &str = "-- step: add-column t c\nALTER TABLE `t` ADD COLUMN `c` INT, ALGORITHM=INSTANT;\n";
    const DROP: &str = "-- step: drop-column t c\nALTER TABLE `t` DROP COLUMN `c`, ALGORITHM=INSTANT;\n";

    /// Offsets of the findings in two migrations of MySQL with these texts.
    fn places(first: &str, second: &str) -> Vec<usize> {
        places_in(&MySql, first, second)
    }

    fn places_in(dialect: &dyn Dialect, first: &str, second: &str) -> Vec<usize> {
        let mut sources = Sources::of_crds("");
        let files = [first, second].map(|text| (sources.add("m.mysql.sql".to_owned(), text.to_owned()), text));
        let mut found = Vec::new();
        check(dialect, files.into_iter(), &mut found);
        let places = found.iter().filter_map(|found| found.diagnostic.span());
        places.map(|span| span.start).collect()
    }

    #[test]
    fn the_first_change_beyond_the_limit_is_found_and_no_other() {
        let pairs = (ADD.to_owned() + DROP).repeat(127);
        assert!(places(&pairs, ADD).is_empty(), "254 and one more");
        let too_many = [ADD, DROP, ADD].concat();
        assert_eq!(places(&pairs, &too_many), [ADD.len()]);
        assert!(
            places_in(&Sqlite, &pairs, &too_many).is_empty(),
            "no limit in this dialect"
        );
    }

    #[test]
    fn a_table_that_is_written_anew_counts_from_the_start() {
        let pairs = (ADD.to_owned() + DROP).repeat(127);
        for rebuild in [
            "-- step: change-column t d\nALTER TABLE `t` MODIFY COLUMN `d` BIGINT;\n",
            "-- step: drop-column t d\nALTER TABLE `t` DROP COLUMN `d`, ALGORITHM=INPLACE, LOCK=NONE;\n",
        ] {
            assert!(
                places(&pairs, &(rebuild.to_owned() + ADD + DROP)).is_empty(),
                "{rebuild}"
            );
        }
        let other = "-- step: change-column u d\nALTER TABLE `u` MODIFY COLUMN `d` BIGINT;\n";
        assert_eq!(places(&pairs, &[other, ADD, DROP].concat()).len(), 1, "another table");
    }
}
