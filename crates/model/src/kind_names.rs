//! What people call a kind, on command lines and in events, references and notices.

use crate::kind::{Kind, Registry};

impl Registry {
    /// Finds a kind by name, singular, plural or short name, each also with its group behind a dot, without regard to
    /// case. A short name never hides another kind's name.
    pub fn find(&self, name: &str) -> Option<&'static Kind> {
        let (word, group) = match name.split_once('.') {
            Some((word, group)) => (word, Some(group)),
            None => (name, None),
        };
        let is_of_group = |kind: &&Kind| group.is_none_or(|group| kind.group.eq_ignore_ascii_case(group));
        let is_meant = |known: &&str| known.eq_ignore_ascii_case(word);
        let kinds = || self.kinds.iter().copied().filter(is_of_group);
        kinds()
            .find(|kind| [kind.name, kind.singular, kind.plural].iter().any(is_meant))
            .or_else(|| kinds().find(|kind| kind.short_names.iter().any(is_meant)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Kind = Kind {
        name: "Run",
        singular: "run",
        plural: "runs",
        short_names: &["rn"],
        group: "g.example.com",
        ..Kind::EMPTY
    };
    const OTHER_RUN: Kind = Kind {
        group: "h.example.com",
        ..RUN
    };
    static KINDS: [&Kind; 2] = [&RUN, &OTHER_RUN];

    fn found(name: &str) -> Option<&'static str> {
        let registry = Registry {
            kinds: &KINDS,
            ..Registry::EMPTY
        };
        registry.find(name).map(|kind| kind.group)
    }

    #[test]
    fn a_kind_is_found_by_each_of_its_names_with_and_without_its_group() {
        for name in ["Run", "run", "RUNS", "rn"] {
            assert_eq!(found(name), Some("g.example.com"), "{name}");
            for group in ["g.example.com", "h.example.com"] {
                assert_eq!(found(&format!("{name}.{group}")), Some(group), "{name}");
            }
            assert_eq!(found(&format!("{name}.H.Example.com")), Some("h.example.com"));
            for wrong in ["", "example.com", "g", "g.example.com.h"] {
                assert_eq!(found(&format!("{name}.{wrong}")), None, "{name}.{wrong}");
            }
        }
        assert_eq!(found("jobs.g.example.com"), None);
    }
}
