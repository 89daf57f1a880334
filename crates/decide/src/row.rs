//! A row beside the object that was observed.

use std::cmp::Ordering;

use kindex_model::object::{Object, ResourceVersion};
use kindex_model::projection::content_hash;
use kindex_model::row_version::RowVersion;
use kindex_query::Life;
use kindex_store::RowState;

/// What SQL says about the uid, as far as decisions need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Version of the stored text.
    pub version: RowVersion,
    /// Live, evicted or deleted.
    pub life: Life,
    /// Whether that text is the one that the row should hold.
    pub text: RowText,
}

/// What is known of the text of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowText {
    /// Kindex wrote it, and nothing speaks against it.
    Trusted,
    /// Another program wrote it: it is written once more.
    Foreign,
    /// The row claims the very version that was observed and holds another text. One of the two is
    /// of a time that a restored cluster lost, or of before the cluster changed how it shows what it holds.
    Different,
}

/// How the text of a row stands to one version of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is of an older version.
    Behind,
    /// It is that version.
    Current,
    /// It is that version, and was changed in SQL alone since.
    Edited,
    /// It may be that version, but another program wrote it.
    Unproven,
    /// It says that version and is another text: only the cluster can tell which of the two is of its own time.
    Contradicting,
    /// It is of a newer version.
    Ahead,
}

impl Row {
    /// The row as it stands beside what was observed of its object. Texts are compared only where
    /// versions do not tell.
    pub fn beside(state: &RowState, observed: Option<&Object>) -> Self {
        let same_version = |object: &&Object| object.metadata.resource_version == state.res_version.pack();
        let text = match (state.hash, observed.filter(same_version)) {
            (None, _) => RowText::Foreign,
            (Some(stored), Some(object)) if stored != content_hash(object) => RowText::Different,
            (Some(_), _) => RowText::Trusted,
        };
        Self {
            version: state.res_version,
            life: state.life,
            text,
        }
    }

    /// The version of the cluster that the text has, or followed when it was changed in SQL alone.
    pub fn cluster_version(&self) -> ResourceVersion {
        self.version.of_cluster()
    }

    /// How the text stands to this version.
    pub fn standing(&self, version: ResourceVersion) -> Standing {
        match (self.cluster_version().cmp(&version), self.text) {
            (Ordering::Less, _) => Standing::Behind,
            (Ordering::Greater, _) => Standing::Ahead,
            (Ordering::Equal, RowText::Trusted) if self.version.is_direct() => Standing::Edited,
            (Ordering::Equal, RowText::Trusted) => Standing::Current,
            (Ordering::Equal, RowText::Foreign) => Standing::Unproven,
            (Ordering::Equal, RowText::Different) => Standing::Contradicting,
        }
    }

    /// Whether an object of this version that is not on its way out leaves nothing to write.
    pub fn is_current(&self) -> bool {
        self.life == Life::Live && self.text == RowText::Trusted
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::object::Uid;
    use kindex_store::Arrival;

    use super::*;

    fn object(version: u64, payload: &str) -> Object {
        let text =
            format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"{version}"}},"spec":"{payload}"}}"#);
        Object::parse_str(&text).expect("an object")
    }

    /// How the row of an archived object, which holds the first text, stands to the second.
    fn standing(stored: &Object, observed: &Object) -> Standing {
        let state = RowState {
            arrival: Arrival(1),
            uid: Uid::from("u"),
            namespace: String::new(),
            name: "a".to_owned(),
            res_version: RowVersion::unpack(stored.metadata.resource_version),
            hash: Some(content_hash(stored)),
            life: Life::Evicted,
        };
        Row::beside(&state, Some(observed)).standing(observed.metadata.resource_version)
    }

    #[test]
    fn versions_tell_first_and_texts_where_they_are_equal() {
        let observed = object(5, "a");
        assert_eq!(standing(&object(4, "a"), &observed), Standing::Behind);
        assert_eq!(standing(&object(5, "a"), &observed), Standing::Current);
        assert_eq!(standing(&object(5, "b"), &observed), Standing::Contradicting);
        assert_eq!(standing(&object(6, "a"), &observed), Standing::Ahead);
    }

    #[test]
    fn what_sql_made_of_a_version_stands_beside_that_version() {
        let followed = RowVersion::Cluster(ResourceVersion(5));
        let edited = object(followed.next_direct().expect("the first").pack().0, "b");
        assert_eq!(standing(&edited, &object(4, "a")), Standing::Ahead);
        assert_eq!(standing(&edited, &object(5, "a")), Standing::Edited);
        assert_eq!(standing(&edited, &object(6, "a")), Standing::Behind);
    }
}
