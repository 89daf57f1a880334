//! Of which characters names are, and how they begin.

/// The rules of one sort of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRules {
    /// `[a-z][a-z0-9_-]*`, not beginning with `mlrun-` or `system-`.
    Project,
    /// `[A-Za-z0-9_-]+`.
    Run,
    /// `[A-Za-z][A-Za-z0-9._/-]*`: of metrics and parameters. `_mlrun.` is reserved, and begins with no letter.
    Metric,
    /// `[A-Za-z0-9._-]+`, not beginning with `mlrun.`.
    TagKey,
    /// Anything: of batch ids.
    Any,
    /// Names between slashes, none of them empty, `.` or `..`, without control characters and backslashes.
    ArtifactName,
}

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// There is none.
    #[error("is empty")]
    Empty,
    /// It is over its limit.
    #[error("has more than {0} characters")]
    TooLong(usize),
    /// A character that the rule does not have.
    #[error("holds {0:?}; allowed are {1}")]
    Character(char, &'static str),
    /// It begins otherwise than the rule says.
    #[error("begins with {0:?}; it has to begin with {1}")]
    Begin(char, &'static str),
    /// Names that begin so are the service's own.
    #[error("begins with {0:?}, which is reserved")]
    Reserved(&'static str),
    /// A part of a path that is no name.
    #[error("has the part {0:?} between slashes; each part has to be a name")]
    Part(&'static str),
}

impl NameRules {
    /// Checks a name, of so many characters at most.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(self, name: &str, max: usize) -> Result<(), NameFault> {
        let Some(first) = name.chars().next() else {
            return Err(NameFault::Empty);
        };
        if name.len() > max && name.chars().count() > max {
            return Err(NameFault::TooLong(max));
        }
        if let Some(reserved) = self.reserved().iter().find(|reserved| name.starts_with(**reserved)) {
            return Err(NameFault::Reserved(reserved));
        }
        let (is_first, how) = self.first();
        if !is_first(first) {
            return Err(NameFault::Begin(first, how));
        }
        let (is_part, allowed) = self.characters();
        if let Some(other) = name.chars().find(|character| !is_part(*character)) {
            return Err(NameFault::Character(other, allowed));
        }
        match self {
            Self::ArtifactName => parts(name),
            Self::Project | Self::Run | Self::Metric | Self::TagKey | Self::Any => Ok(()),
        }
    }

    fn reserved(self) -> &'static [&'static str] {
        match self {
            Self::Project => &["mlrun-", "system-"],
            Self::Metric => &["_mlrun."],
            Self::TagKey => &["mlrun."],
            Self::Run | Self::Any | Self::ArtifactName => &[],
        }
    }

    fn first(self) -> (fn(char) -> bool, &'static str) {
        match self {
            Self::Project => (|first| first.is_ascii_lowercase(), "a to z"),
            Self::Metric => (|first| first.is_ascii_alphabetic(), "a letter, A to Z or a to z"),
            Self::Run | Self::TagKey | Self::Any | Self::ArtifactName => (|_| true, "anything"),
        }
    }

    fn characters(self) -> (fn(char) -> bool, &'static str) {
        match self {
            Self::Project => (
                |c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'),
                "a-z, 0-9, _ and -",
            ),
            Self::Run => (
                |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'),
                "A-Z, a-z, 0-9, _ and -",
            ),
            Self::Metric => (
                |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-'),
                "A-Z, a-z, 0-9 and . _ / -",
            ),
            Self::TagKey => (
                |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'),
                "A-Z, a-z, 0-9 and . _ -",
            ),
            Self::Any => (|_| true, "all"),
            Self::ArtifactName => (
                |c| !c.is_control() && c != '\\',
                "all but control characters and backslashes",
            ),
        }
    }
}

/// Parts are never followed as a path; these would mislead whoever does.
fn parts(name: &str) -> Result<(), NameFault> {
    for part in name.split('/') {
        if let Some(none) = ["", ".", ".."].iter().find(|none| **none == part) {
            return Err(NameFault::Part(none));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_characters_and_beginnings_that_their_rules_allow() {
        for (name_rules, name, fault) in [
            (NameRules::Project, "vision-2_b", None),
            (NameRules::Project, "BAD NAME!", Some(NameFault::Begin('B', "a to z"))),
            (NameRules::Project, "9lives", Some(NameFault::Begin('9', "a to z"))),
            (NameRules::Project, "mlrun-x", Some(NameFault::Reserved("mlrun-"))),
            (NameRules::Project, "system-x", Some(NameFault::Reserved("system-"))),
            (NameRules::Run, "-_9Az", None),
            (
                NameRules::Run,
                "a.b",
                Some(NameFault::Character('.', "A-Z, a-z, 0-9, _ and -")),
            ),
            (NameRules::Metric, "train/accuracy.top-1_x", None),
            (NameRules::Metric, "_mlrun.x", Some(NameFault::Reserved("_mlrun."))),
            (
                NameRules::Metric,
                "1x",
                Some(NameFault::Begin('1', "a letter, A to Z or a to z")),
            ),
            (
                NameRules::Metric,
                "l\u{f6}ss",
                Some(NameFault::Character('\u{f6}', "A-Z, a-z, 0-9 and . _ / -")),
            ),
            (NameRules::TagKey, "mlrun.x", Some(NameFault::Reserved("mlrun."))),
            (NameRules::TagKey, "mlrunx", None),
            (NameRules::Any, "any \u{1f600} text", None),
            (NameRules::Any, "a\0", None),
            (NameRules::ArtifactName, "models/best.pt", None),
            (NameRules::ArtifactName, "../../etc/passwd", Some(NameFault::Part(".."))),
            (NameRules::ArtifactName, "/etc/passwd", Some(NameFault::Part(""))),
            (NameRules::ArtifactName, "a/./b", Some(NameFault::Part("."))),
            (NameRules::Run, "", Some(NameFault::Empty)),
        ] {
            assert_eq!(name_rules.check(name, 64).err(), fault, "{name:?}");
        }
    }

    #[test]
    fn a_name_has_as_many_characters_as_its_limit_says_and_no_more() {
        for name_rules in [NameRules::Project, NameRules::Run, NameRules::Metric, NameRules::TagKey] {
            for (length, fault) in [(63, None), (64, None), (65, Some(NameFault::TooLong(64)))] {
                assert_eq!(name_rules.check(&"a".repeat(length), 64).err(), fault, "{name_rules:?}");
            }
        }
    }

    #[test]
    fn multibyte_names_of_any_length_never_panic() {
        for length in 0..300 {
            for character in ['\u{e9}', '\u{20ac}', '\u{1f600}', '\u{200d}'] {
                let name = character.to_string().repeat(length);
                for name_rules in [
                    NameRules::Metric,
                    NameRules::TagKey,
                    NameRules::Any,
                    NameRules::ArtifactName,
                ] {
                    let is_any = matches!(name_rules, NameRules::Any | NameRules::ArtifactName);
                    let is_good = is_any && (1..=128).contains(&length);
                    assert_eq!(name_rules.check(&name, 128).is_ok(), is_good, "{name_rules:?} {length}");
                }
            }
        }
    }
}
