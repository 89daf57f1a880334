//! What a key allows.

use std::fmt;
use std::str::FromStr;

/// One thing that keys allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// To open runs and to send what belongs to them.
    Ingest,
    /// To read.
    Query,
    /// All of it, and to kill and delete runs.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ingest, Self::Query, Self::Admin];

    /// As people write it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Query => "query",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Ingest => 1,
            Self::Query => 2,
            Self::Admin => 4,
        }
    }
}

/// A text names no scopes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a scope; scopes are ingest, query and admin, with commas between them")]
pub struct ScopesError(String);

/// Some scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Every scope.
    pub const ALL: Self = Self(7);

    /// These.
    #[must_use]
    pub fn of(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |bits, scope| bits | scope.bit()))
    }

    /// Whether they allow it: admin allows all.
    #[must_use]
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    /// As a column holds them.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0 as i64
    }

    /// Of what a column holds.
    #[must_use]
    pub fn of_number(number: i64) -> Self {
        Self(u8::try_from(number).unwrap_or_default() & Self::ALL.0)
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Scope::ALL.iter().filter(|scope| self.0 & scope.bit() != 0);
        let words: Vec<&str> = words.map(|scope| scope.word()).collect();
        f.write_str(&words.join(","))
    }
}

impl FromStr for Scopes {
    type Err = ScopesError;

    fn from_str(text: &str) -> Result<Self, ScopesError> {
        let mut scopes = Vec::new();
        for word in text.split(',') {
            let scope = Scope::ALL.into_iter().find(|scope| scope.word() == word.trim());
            scopes.push(scope.ok_or_else(|| ScopesError(word.to_owned()))?);
        }
        Ok(Self::of(&scopes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_allows_all_and_others_themselves() {
        for (text, ingest, query, admin) in [
            ("ingest", true, false, false),
            ("query", false, true, false),
            ("ingest,query", true, true, false),
            ("admin", true, true, true),
        ] {
            let scopes: Scopes = text.parse().expect("scopes");
            let allowed = [Scope::Ingest, Scope::Query, Scope::Admin].map(|scope| scopes.allow(scope));
            assert_eq!(allowed, [ingest, query, admin], "{text}");
            assert_eq!(scopes.to_string(), text);
            assert_eq!(Scopes::of_number(scopes.number()), scopes);
        }
        assert!(!Scopes::default().allow(Scope::Query));
        assert_eq!("write".parse::<Scopes>(), Err(ScopesError("write".to_owned())));
    }
}
