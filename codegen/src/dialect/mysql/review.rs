//! Statements that people edited: what in them may fail, and what may lock.

use crate::dialect::words::{has_pair, words};
use crate::dialect::{Lock, Verb};

/// Clauses by which nobody can write while the statement runs.
const LOCKS: [&str; 3] = ["ALGORITHM=COPY", "LOCK=EXCLUSIVE", "LOCK=SHARED"];

/// Extracted columns may be NULL and repeat.
pub(super) fn refused_by_rows(verb: Verb, statement: &str) -> Option<&'static str> {
    let words = words(statement);
    match verb {
        Verb::AddKey => words.iter().any(|word| word == "UNIQUE").then_some("UNIQUE"),
        Verb::AddColumn | Verb::ChangeColumn => has_pair(&words, "NOT", "NULL").then_some("NOT NULL"),
        Verb::CreateTable
        | Verb::DropTable
        | Verb::DropKey
        | Verb::DropColumn
        | Verb::RenameColumn
        | Verb::RenameKey
        | Verb::Fill => None,
    }
}

/// A clause that locks, or no algorithm where a server might choose to copy.
pub(super) fn locks(verb: Verb, statement: &str) -> Option<Lock> {
    let words = words(statement);
    let mut asked = LOCKS.into_iter().filter(|lock| words.iter().any(|word| word == lock));
    if let Some(clause) = asked.next() {
        return Some(Lock::Asked(clause));
    }
    let names_one = words.iter().any(|word| word.starts_with("ALGORITHM="));
    let wants_one = match verb {
        Verb::AddColumn | Verb::DropColumn | Verb::AddKey | Verb::DropKey | Verb::RenameKey => true,
        Verb::CreateTable | Verb::DropTable | Verb::RenameColumn | Verb::ChangeColumn | Verb::Fill => false,
    };
    (wants_one && !names_one).then_some(Lock::NotRuledOut)
}
