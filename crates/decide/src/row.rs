//! Compares a row with the observed version of its object.

use std::cmp::Ordering;

use kindex_model::object::{Object, ResourceVersion};
use kindex_model::projection::content_hash;
use kindex_model::row_version::RowVersion;
use kindex_query::{Life, RowState};

/// The row of a uid, as far as decisions need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Version of the stored text.
    pub version: RowVersion,
    /// Live, archived or deleted.
    pub life: Life,
    /// What is known of the stored text.
    pub text: RowText,
}

/// What is known of the text of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowText {
    /// Kindex wrote it, and it agrees with the observation.
    Trusted,
    /// Another program wrote it: it must be written again.
    Foreign,
    /// The row has the observed version but another text. Either the cluster was restored since, or it now serves the
    /// same object in another form.
    Different,
}

/// How the text of a row compares with one version of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextComparison {
    /// It is of an older version.
    Behind,
    /// It is that version.
    Current,
    /// It is that version with a later change in SQL.
    Edited,
    /// It may be that version, but another program wrote it.
    Unproven,
    /// It has that version but another text: the object must be read from the cluster.
    Contradicting,
    /// It is of a newer version.
    Ahead,
}

impl Row {
    /// Whether it was archived in this version, or in one that is not known to be older.
    pub fn is_archived_in(&self, version: ResourceVersion) -> bool {
        self.life == Life::Archived && self.compare_text(version) != TextComparison::Behind
    }

    /// Compares a row with its observed object. Texts are compared only if the versions are equal.
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

    /// The version of the cluster that the text has, or that an archived object had before it was changed in SQL.
    pub fn cluster_version(&self) -> ResourceVersion {
        self.version.of_cluster()
    }

    /// How the text compares with this version.
    pub fn compare_text(&self, version: ResourceVersion) -> TextComparison {
        match (self.cluster_version().cmp(&version), self.text) {
            (Ordering::Less, _) => TextComparison::Behind,
            (Ordering::Greater, _) => TextComparison::Ahead,
            (Ordering::Equal, RowText::Trusted) if self.version.is_direct() => TextComparison::Edited,
            (Ordering::Equal, RowText::Trusted) => TextComparison::Current,
            (Ordering::Equal, RowText::Foreign) => TextComparison::Unproven,
            (Ordering::Equal, RowText::Different) => TextComparison::Contradicting,
        }
    }

    /// Whether nothing has to be written for an object of this version that is not being deleted.
    pub fn is_current(&self) -> bool {
        self.life == Life::Live && self.text == RowText::Trusted
    }
}

#[cfg(test)]
mod tests {
    use kindex_model::object::Uid;
    use kindex_query::Arrival;

    use super::*;

    fn object(version: u64, payload: &str) -> Object {
        let text =
            format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"{version}"}},"spec":"{payload}"}}"#);
        Object::parse_str(&text).expect("an object")
    }

    /// How the row of an archived object with the first text compares with the second.
    fn compare_text(stored: &Object, observed: &Object) -> TextComparison {
        let state = RowState {
            arrival: Arrival(1),
            uid: Uid::from("u"),
            namespace: String::new(),
            name: "a".to_owned(),
            res_version: RowVersion::unpack(stored.metadata.resource_version),
            hash: Some(content_hash(stored)),
            life: Life::Archived,
        };
        Row::beside(&state, Some(observed)).compare_text(observed.metadata.resource_version)
    }

    #[test]
    fn texts_are_compared_only_under_equal_versions() {
        let observed = object(5, "a");
        assert_eq!(compare_text(&object(4, "a"), &observed), TextComparison::Behind);
        assert_eq!(compare_text(&object(5, "a"), &observed), TextComparison::Current);
        assert_eq!(compare_text(&object(5, "b"), &observed), TextComparison::Contradicting);
        assert_eq!(compare_text(&object(6, "a"), &observed), TextComparison::Ahead);
    }

    #[test]
    fn what_sql_made_of_a_version_stands_beside_that_version() {
        let followed = RowVersion::Cluster(ResourceVersion(5));
        let edited = object(followed.next_direct().expect("the first").pack().0, "b");
        assert_eq!(compare_text(&edited, &object(4, "a")), TextComparison::Ahead);
        assert_eq!(compare_text(&edited, &object(5, "a")), TextComparison::Edited);
        assert_eq!(compare_text(&edited, &object(6, "a")), TextComparison::Behind);
    }
}
