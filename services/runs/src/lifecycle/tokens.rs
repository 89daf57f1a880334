//! Which resume tokens of a run count, by their generations.

/// From the last token that was shown to the newest that was issued: an answer may be lost on its way, or its receiver
/// may die before it has stored the token, and then has the one before. Whoever shows a newer token has it, so that the
/// older ones are of no use to anybody honest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The newest generation that was shown; 0 for none.
    pub shown: i64,
    /// The newest generation that was issued.
    pub newest: i64,
}

impl Tokens {
    /// Of a run that was made.
    pub const FIRST: Self = Self { shown: 0, newest: 1 };

    /// Whether a token counts.
    #[must_use]
    pub fn count(self, generation: i64) -> bool {
        (self.shown.max(1)..=self.newest).contains(&generation)
    }

    /// After a token that counts was shown: those before it do not count any more.
    #[must_use]
    pub fn after(self, shown: i64) -> Self {
        Self {
            shown: self.shown.max(shown),
            ..self
        }
    }

    /// With another token.
    #[must_use]
    pub fn issued(self) -> Self {
        Self {
            newest: self.newest + 1,
            ..self
        }
    }
}
