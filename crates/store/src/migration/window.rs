//! How a database stands to the program that opened it. Pure: which migrations it has against
//! which ones the program knows.

use kindex_model::kind::Migration;

/// A migration as the database remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The schema that it leads to.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Hash of the texts up to and with it.
    pub checksum: String,
    /// The lowest schema whose programs may go on writing beside it.
    pub compatible: u32,
    /// How many of its steps have run.
    pub steps_done: usize,
    /// How far the fill is that is under way: rows up to this uid.
    pub fill_after: Option<i64>,
    /// Whether all of it has run.
    pub is_finished: bool,
}

/// How the migrations of a database compare with those of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationState {
    /// It has exactly the program's migrations.
    Current,
    /// It remembers none: it is empty, or its tables came from elsewhere.
    Untracked,
    /// Its tables came from elsewhere, and taking them up did not finish.
    Adopting,
    /// It lacks the migrations from this place of the program's list on; the first of them may
    /// have begun.
    Behind {
        /// Place in the list.
        first: usize,
    },
    /// A newer program has migrated it.
    Ahead {
        /// The highest schema that it has.
        number: u32,
        /// Whether this program may go on writing.
        is_writable: bool,
    },
    /// It has another migration of the same number.
    Different {
        /// The number.
        number: u32,
        /// How the database calls it.
        theirs: String,
        /// How the program calls it.
        ours: &'static str,
    },
}

/// What is remembered of an adoption, which has the number 0, and the migrations.
pub(super) fn adoption(applied: &[Applied]) -> (Option<&Applied>, &[Applied]) {
    match applied.split_first() {
        Some((first, migrations)) if first.number == 0 => (Some(first), migrations),
        Some(_) | None => (None, applied),
    }
}

/// Compares; `applied` is in order of number.
pub(super) fn judge(applied: &[Applied], known: &[Migration]) -> MigrationState {
    let (adoption, applied) = adoption(applied);
    if adoption.is_some_and(|adoption| !adoption.is_finished) {
        return MigrationState::Adopting;
    }
    if applied.is_empty() && !known.is_empty() {
        return MigrationState::Untracked;
    }
    for (theirs, ours) in applied.iter().zip(known) {
        if theirs.number != ours.number || theirs.checksum != ours.checksum {
            return MigrationState::Different {
                number: ours.number,
                theirs: theirs.name.clone(),
                ours: ours.name,
            };
        }
    }
    if let Some(newer) = applied.get(known.len()..).filter(|newer| !newer.is_empty()) {
        let newest_of_ours = known.last().map_or(0, |migration| migration.number);
        return MigrationState::Ahead {
            number: newer[newer.len() - 1].number,
            is_writable: newer.iter().all(|migration| migration.compatible <= newest_of_ours),
        };
    }
    let finished = applied.iter().take_while(|migration| migration.is_finished).count();
    if finished == known.len() {
        MigrationState::Current
    } else {
        MigrationState::Behind { first: finished }
    }
}

impl MigrationState {
    /// Why a program may not write to such a database, with what to do; `None` where it may.
    pub(in super::super) fn refusal(&self, known: &[Migration]) -> Option<String> {
        let newest = known.last().map_or(0, |migration| migration.number);
        match self {
            Self::Current | Self::Untracked | Self::Ahead { is_writable: true, .. } => None,
            Self::Adopting => Some(
                "the database is being adopted from another program, and that did not finish: run \
                 `kindex migrate --adopt` again"
                    .to_owned(),
            ),
            Self::Behind { first } => Some(format!(
                "the database lacks migration {} of {newest}, or did not finish it: run `kindex migrate`",
                known[*first].number
            )),
            Self::Ahead { number, .. } => Some(format!(
                "the database has schema {number}, this program knows {newest} and may not write beside it: \
                 use the newer program that migrated it"
            )),
            Self::Different { number, theirs, ours } => Some(format!(
                "migration {number} of the database (`{theirs}`) is not that of this program (`{ours}`): \
                 one of the two was edited after it was applied; use the program whose schema/migrations made \
                 the database"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn migration(number: u32, checksum: &'static str) -> Migration {
        Migration {
            number,
            name: "ours",
            compatible: number,
            texts: &[],
            checksum,
        }
    }

    const KNOWN: [Migration; 3] = [migration(1, "a"), migration(2, "b"), migration(3, "c")];

    fn applied(count: usize) -> Vec<Applied> {
        let all = ["a", "b", "c", "d", "e"].into_iter().zip(1..);
        all.take(count)
            .map(|(checksum, number)| Applied {
                number,
                name: "theirs".to_owned(),
                checksum: checksum.to_owned(),
                compatible: number,
                steps_done: 0,
                fill_after: None,
                is_finished: true,
            })
            .collect()
    }

    #[test]
    fn a_database_with_all_migrations_is_current() {
        assert_eq!(judge(&applied(3), &KNOWN), MigrationState::Current);
        assert_eq!(judge(&[], &[]), MigrationState::Current);
    }

    #[test]
    fn one_that_lacks_some_or_broke_off_is_behind() {
        assert_eq!(judge(&applied(1), &KNOWN), MigrationState::Behind { first: 1 });
        let mut broken_off = applied(3);
        broken_off[2].is_finished = false;
        let state = judge(&broken_off, &KNOWN);
        assert_eq!(state, MigrationState::Behind { first: 2 });
        assert!(state.refusal(&KNOWN).expect("refused").contains("kindex migrate"));
    }

    #[test]
    fn a_newer_one_is_written_to_only_where_all_that_is_new_allows_it() {
        let mut newer = applied(5);
        assert_eq!(
            judge(&newer, &KNOWN),
            MigrationState::Ahead {
                number: 5,
                is_writable: false
            }
        );
        newer[3].compatible = 3;
        assert_eq!(
            judge(&newer, &KNOWN),
            MigrationState::Ahead {
                number: 5,
                is_writable: false
            }
        );
        newer[4].compatible = 2;
        assert_eq!(
            judge(&newer, &KNOWN),
            MigrationState::Ahead {
                number: 5,
                is_writable: true
            }
        );
        assert_eq!(judge(&newer, &KNOWN).refusal(&KNOWN), None);
    }

    #[test]
    fn an_edited_migration_is_named() {
        let mut edited = applied(3);
        edited[1].checksum = "x".to_owned();
        let state = judge(&edited, &KNOWN);
        assert!(matches!(state, MigrationState::Different { number: 2, .. }));
        assert!(state.refusal(&KNOWN).expect("refused").contains("migration 2"));
    }

    #[test]
    fn an_adoption_ends_before_anything_else_counts() {
        let mut begun = applied(3);
        begun.insert(
            0,
            Applied {
                number: 0,
                is_finished: false,
                ..begun[0].clone()
            },
        );
        assert_eq!(judge(&begun, &KNOWN), MigrationState::Adopting);
        assert!(
            MigrationState::Adopting
                .refusal(&KNOWN)
                .expect("refused")
                .contains("--adopt")
        );
        begun[0].is_finished = true;
        assert_eq!(judge(&begun, &KNOWN), MigrationState::Current);
    }

    #[test]
    fn one_without_a_memory_is_untracked() {
        assert_eq!(judge(&[], &KNOWN), MigrationState::Untracked);
    }
}
