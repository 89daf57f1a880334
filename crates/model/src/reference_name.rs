//! The name of a reference on an object: which other object, the *holder*, uses it. In the form of a finalizer, so that
//! Kubernetes keeps the object as long as it has the name. Knows neither objects nor kinds.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest prefix of a finalizer.
const PREFIX_MAX: usize = 253;
/// Longest part of a finalizer after the slash, and longest label of DNS.
const NAME_MAX: usize = 63;

/// `cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce`: kind in lower case and group of the holder, and
/// its uid. A uid and not a name, so that the reference does not pass to an object created anew under the name of its
/// holder. Names are ordered by kind, group and uid. Clones share one text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReferenceName {
    text: Arc<str>,
    /// Where the dot is that ends the kind.
    dot: usize,
    /// Where the slash is that ends the group.
    slash: usize,
}

/// Why a text names no reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReferenceName {
    /// There is no slash, or more than one.
    #[error(
        "\"{0}\" is not a reference: it has to be KIND.GROUP/UID, \
         like cluster.compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce"
    )]
    Form(String),
    /// The part before the slash is no lower-case subdomain of at least two labels.
    #[error(
        "\"{0}\" names no kind and group: lower-case labels separated by dots, at most 253 characters in all and 63 each, \
         like cluster.compute.example.com"
    )]
    Prefix(String),
    /// The part after the slash is no uid.
    #[error("\"{0}\" is not a uid: letters, digits, '-', '_' and '.', at most 63, a letter or digit at both ends")]
    Uid(String),
}

impl ReferenceName {
    /// The name by which the object with this uid, of a kind and group, holds others.
    ///
    /// # Errors
    ///
    /// Those of parsing, where kind and group are no subdomain or the uid does not fit.
    pub fn new(kind: &str, group: &str, uid: &str) -> Result<Self, InvalidReferenceName> {
        let mut text = [kind, ".", group, "/", uid].concat();
        text[..kind.len()].make_ascii_lowercase();
        text.parse()
    }

    /// The reference that a finalizer is, if it is one: it names its holder by a UUID, as the uids of Kubernetes are.
    /// Finalizers of controllers have the same form with a word in that place, such as `example.com/backup`.
    pub fn of_finalizer(finalizer: &str) -> Option<Self> {
        let (_, uid) = finalizer.split_once('/')?;
        is_uuid(uid).then(|| finalizer.parse().ok()).flatten()
    }

    /// All of it, as a finalizer has it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Kind of the holder in lower case: `cluster`.
    pub fn kind(&self) -> &str {
        &self.text[..self.dot]
    }

    /// Group of the holder: `compute.example.com`.
    pub fn group(&self) -> &str {
        &self.text[self.dot + 1..self.slash]
    }

    /// Uid of the holder.
    pub fn uid(&self) -> &str {
        &self.text[self.slash + 1..]
    }

    /// The same with the uid in lower case, as the uids of Kubernetes are, where this one is not and no holder has it.
    pub fn in_lower_case(&self) -> Option<String> {
        let is_upper = self.uid().bytes().any(|byte| byte.is_ascii_uppercase());
        is_upper.then(|| self.text.to_ascii_lowercase())
    }

    /// What names are ordered by. The order of the texts is another one, as a hyphen comes before a dot and a slash.
    fn parts(&self) -> (&str, &str, &str) {
        (self.kind(), self.group(), self.uid())
    }
}

impl Ord for ReferenceName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl PartialOrd for ReferenceName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for ReferenceName {
    type Err = InvalidReferenceName;

    fn from_str(text: &str) -> Result<Self, InvalidReferenceName> {
        let (prefix, uid) = text
            .split_once('/')
            .ok_or_else(|| InvalidReferenceName::Form(text.to_owned()))?;
        if uid.contains('/') {
            return Err(InvalidReferenceName::Form(text.to_owned()));
        }
        let dot = prefix
            .find('.')
            .ok_or_else(|| InvalidReferenceName::Prefix(prefix.to_owned()))?;
        if prefix.len() > PREFIX_MAX || !prefix.split('.').all(is_label) {
            return Err(InvalidReferenceName::Prefix(prefix.to_owned()));
        }
        if !is_uid(uid) {
            return Err(InvalidReferenceName::Uid(uid.to_owned()));
        }
        Ok(Self {
            text: Arc::from(text),
            dot,
            slash: prefix.len(),
        })
    }
}

impl fmt::Display for ReferenceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edges = !text.starts_with('-') && !text.ends_with('-');
    !text.is_empty() && text.len() <= NAME_MAX && edges && text.bytes().all(inner)
}

fn is_uuid(text: &str) -> bool {
    let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let mut bytes = text.bytes().enumerate();
    text.len() == 36
        && bytes.all(|(at, byte)| {
            if is_hyphen(at) {
                byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        })
}

fn is_uid(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= NAME_MAX && text.starts_with(edge) && text.ends_with(edge) && text.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";

    #[test]
    fn a_name_is_read_as_it_is_written() {
        let name = ReferenceName::new("Cluster", "compute.example.com", UID).expect("a name");
        assert_eq!(name.to_string(), format!("cluster.compute.example.com/{UID}"));
        assert_eq!(name.to_string().parse(), Ok(name.clone()));
        assert_eq!(
            (name.kind(), name.group(), name.uid()),
            ("cluster", "compute.example.com", UID)
        );
    }

    /// As if names were ordered by their texts, in which a hyphen comes before the dot and the slash that end a part.
    #[test]
    fn names_are_equal_and_ordered_as_their_parts_are() {
        let (kinds, groups) = (["a", "a-b", "a0", "ab"], ["g", "g-h", "g.h", "g0"]);
        let uids = ["u", "U", "u-1", "u.1", "u_1", "u1"];
        let mut all = Vec::new();
        for (kind, group) in kinds.iter().flat_map(|kind| groups.map(|group| (*kind, group))) {
            let of_group = uids.map(|uid| {
                (
                    ReferenceName::new(kind, group, uid).expect("a name"),
                    (kind, group, uid),
                )
            });
            all.extend(of_group);
        }
        for (name, parts) in &all {
            assert_eq!((name.kind(), name.group(), name.uid()), *parts);
            for (other, of_other) in &all {
                assert_eq!(name.cmp(other), parts.cmp(of_other), "{name} {other}");
                assert_eq!(name == other, parts == of_other, "{name} {other}");
            }
        }
    }

    /// As if the letters of the group were lowered with those of the kind.
    #[test]
    fn the_kind_alone_is_written_in_lower_case() {
        let upper = ReferenceName::new("Cluster", "Compute.example.com", UID);
        assert_eq!(
            upper,
            Err(InvalidReferenceName::Prefix("cluster.Compute.example.com".to_owned()))
        );
    }

    #[test]
    fn a_finalizer_is_a_reference_where_it_names_its_holder_by_a_uuid() {
        let name = format!("cluster.compute.example.com/{UID}");
        assert_eq!(
            ReferenceName::of_finalizer(&name).map(|found| found.to_string()),
            Some(name)
        );
        for other in [
            "example.com/backup",
            "foregroundDeletion",
            "michelangelo/Ingester",
            "michelangelo.api/deletion",
            "compute.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852cg",
            "compute.example.com/7f7a15abf1cc4f3bb1c0232ae8d852ce1234",
            "example/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce",
        ] {
            assert_eq!(ReferenceName::of_finalizer(other), None, "{other}");
        }
    }

    /// Objects may have some from earlier.
    #[test]
    fn a_uid_in_upper_case_is_read_and_has_another_form() {
        let upper = format!("cluster.compute.example.com/{}", UID.to_ascii_uppercase());
        let name = ReferenceName::of_finalizer(&upper).expect("a reference");
        assert_eq!(name.to_string(), upper);
        let lower = format!("cluster.compute.example.com/{UID}");
        assert_eq!(name.in_lower_case().as_deref(), Some(&*lower));
        let name: ReferenceName = lower.parse().expect("a name");
        assert_eq!(name.in_lower_case(), None);
    }

    #[test]
    fn the_form_is_shown_by_a_name_that_is_a_reference() {
        let said = "cluster".parse::<ReferenceName>().expect_err("no name").to_string();
        let shown = said.rsplit_once("like ").expect("an example").1;
        assert!(ReferenceName::of_finalizer(shown).is_some(), "{said}");
    }

    #[test]
    fn what_is_no_finalizer_is_no_reference() {
        let error = |text: &str| text.parse::<ReferenceName>().expect_err(text);
        for form in ["", "cluster", "a.b/c/d"] {
            assert!(matches!(error(form), InvalidReferenceName::Form(_)), "{form}");
        }
        let long = format!("{}.{}/u", "a".repeat(63), vec!["b".repeat(62); 4].join("."));
        for prefix in ["cluster/u", "Cluster.example.com/u", "a..b/u", ".a/u", "-a.b/u", &long] {
            assert!(matches!(error(prefix), InvalidReferenceName::Prefix(_)), "{prefix}");
        }
        for uid in [
            "a.b/".to_owned(),
            "a.b/-u".to_owned(),
            format!("a.b/{}", "u".repeat(64)),
            "a.b/ü".to_owned(),
        ] {
            assert!(matches!(error(&uid), InvalidReferenceName::Uid(_)), "{uid}");
        }
        let longest = format!("a.b/{}", "u".repeat(63));
        assert_eq!(
            longest.parse::<ReferenceName>().map(|name| name.to_string()),
            Ok(longest)
        );
    }
}
