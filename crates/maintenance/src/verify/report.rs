//! The findings of a verification, and their counts.

use std::collections::BTreeMap;
use std::fmt;

use kindex_model::object::Uid;
use serde::Serialize;

use super::held::HeldObjects;

/// How a row differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The object has no row.
    Missing,
    /// The row is live, but the object is gone.
    Orphan,
    /// The row is marked deleted, but the object is present.
    Deleted,
    /// The row is archived, but the object is present.
    Evicted,
    /// The row holds another version.
    Version,
    /// The row holds another text, or one that is not a valid object.
    Payload,
    /// `uid`, name, version or creation time are not those of the row's own text.
    Metadata,
    /// An extracted column is not what the row's own text says.
    Column,
    /// `proto` is not the encoding of the row's own text.
    Proto,
    /// A row of the labels' table is missing, too many, or another one.
    Label,
    /// The same of annotations.
    Annotation,
    /// `content_hash` is not that of the row's own text.
    ContentHash,
    /// Another row of the same name is not deleted either.
    Namesake,
    /// Labels or annotations of a uid without a row.
    #[serde(rename = "stray")]
    OrphanedSides,
    /// The cluster's text is not an object that SQL can hold.
    Unreadable,
}

impl Class {
    /// The name in reports and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Orphan => "orphan",
            Self::Deleted => "deleted",
            Self::Evicted => "evicted",
            Self::Version => "version",
            Self::Payload => "payload",
            Self::Metadata => "metadata",
            Self::Column => "column",
            Self::Proto => "proto",
            Self::Label => "label",
            Self::Annotation => "annotation",
            Self::ContentHash => "content-hash",
            Self::Namesake => "namesake",
            Self::OrphanedSides => "stray",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One difference of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What sort of difference.
    pub class: Class,
    /// What was found and what was expected, for people.
    pub detail: String,
}

impl Difference {
    pub(super) fn new(class: Class, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { class, detail }
    }
}

/// One object with its differences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind.
    pub kind: &'static str,
    /// Its namespace, as far as known; empty for cluster-wide kinds.
    pub namespace: String,
    /// Its name, as far as known.
    pub name: String,
    /// Its uid; empty where the cluster's text has none.
    pub uid: String,
    /// At least one.
    pub differences: Vec<Difference>,
    /// Why the database refused the object, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
    /// Whether the row is the only copy of the object and cannot be trusted.
    pub lost: bool,
}

impl Finding {
    pub(super) fn of_uid(kind: &'static str, uid: &Uid, difference: Difference) -> Self {
        Self {
            kind,
            namespace: String::new(),
            name: String::new(),
            uid: uid.to_string(),
            differences: vec![difference],
            quarantined: None,
            lost: false,
        }
    }
}

/// The counts of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The kind.
    pub kind: &'static str,
    /// Objects in the list.
    pub objects: u64,
    /// Rows, live or not.
    pub rows: u64,
    /// Objects and rows with a difference.
    pub differing: u64,
    /// Differences by class.
    pub differences: BTreeMap<Class, u64>,
    /// Objects that changed at every reading, while their rows followed.
    pub unsettled: u64,
    /// Rows in another version than the kind's own. That alone is no difference.
    pub unconverted: u64,
    /// Rows that are the only copy of their object and cannot be trusted.
    pub lost: u64,
    /// Objects that are being deleted and that others hold.
    pub held: HeldObjects,
}

impl Checked {
    pub(super) fn count(&mut self, finding: &Finding) {
        self.differing += 1;
        self.lost += u64::from(finding.lost);
        for difference in &finding.differences {
            *self.differences.entry(difference.class).or_default() += 1;
        }
    }
}

/// The counts of all kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The kinds, in the order of the registry.
    pub kinds: Vec<Checked>,
}

impl Report {
    /// Whether SQL equals the cluster.
    pub fn is_clean(&self) -> bool {
        self.differing() == 0
    }

    /// Objects and rows with a difference.
    pub fn differing(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.differing).sum()
    }

    /// By kind, what the counter of lost objects is to be raised by: objects that the cluster no
    /// longer holds and of which SQL holds no copy that can be trusted. Objects that left the cluster
    /// before SQL ever held them leave no trace on either side; those the ingester counts when it
    /// sees their delete event.
    pub fn lost(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.kinds.iter().map(|kind| (kind.kind, kind.lost))
    }
}
