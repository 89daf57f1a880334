//! What is left to do on an object that an archived holder named, or names since a move: a pure decision. Whoever
//! moves the holder follows it, one write at a time, until the fields still say so after a write. Knows neither the
//! object nor how it is written.

/// Whether the holder names the object, as it was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// It does not, or is gone.
    Unnamed,
    /// It does.
    Named,
    /// It does, and is being deleted: its deletion releases the object.
    NamedByLeaving,
}

/// What is done on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettlingStep {
    /// The reference is placed by a write in any case.
    Place,
    /// The reference is released in the version that the object had before the holder was read.
    Release,
    /// Nothing more.
    Finish,
}

/// The next step; `done` is what was written last.
///
/// # Guarantees
/// Two moves at once may each take the new target for the other one's former one. The one that writes to it last reads
/// the holder after that, and so agrees with the field that was written last.
pub fn settling_step(naming: Naming, done: Option<SettlingStep>) -> SettlingStep {
    match (naming, done) {
        (Naming::NamedByLeaving, _)
        | (Naming::Named, Some(SettlingStep::Place))
        | (Naming::Unnamed, Some(SettlingStep::Release)) => SettlingStep::Finish,
        (Naming::Named, _) => SettlingStep::Place,
        (Naming::Unnamed, _) => SettlingStep::Release,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_settled_once_the_fields_say_the_same_after_the_write() {
        use {Naming as N, SettlingStep as S};
        for (naming, before, placed, released) in [
            (N::Unnamed, S::Release, S::Release, S::Finish),
            (N::Named, S::Place, S::Finish, S::Place),
            (N::NamedByLeaving, S::Finish, S::Finish, S::Finish),
        ] {
            let next = [None, Some(S::Place), Some(S::Release)].map(|done| settling_step(naming, done));
            assert_eq!(next, [before, placed, released], "{naming:?}");
        }
    }
}
