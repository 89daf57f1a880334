//! One row of the log: key, resource version, what happened, and the object's text. Knows nothing of how rows are read
//! or written.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use super::StoreError;

/// Where an object lives: resource (`plural.group`), namespace (empty for cluster scope) and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The resource.
    pub resource: Arc<str>,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// The key of an object of `resource`.
    pub fn new(resource: impl Into<Arc<str>>, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// What a revision did to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was created.
    Added,
    /// It is another one than before.
    Modified,
    /// It is gone.
    Deleted,
}

impl Change {
    pub(super) fn code(self) -> i64 {
        match self {
            Self::Added => 0,
            Self::Modified => 1,
            Self::Deleted => 2,
        }
    }

    pub(super) fn from_code(code: i64) -> Self {
        match code {
            0 => Self::Added,
            1 => Self::Modified,
            _ => Self::Deleted,
        }
    }
}

/// One mutation of one object, shared by all who look at it; the text is parsed at most once, and only when
/// somebody must look inside.
#[derive(Debug)]
pub struct Revision {
    /// Its resource version.
    pub rv: u64,
    /// What it did.
    pub change: Change,
    /// Of which object.
    pub key: ObjectKey,
    /// The object's JSON as it is served.
    pub text: Bytes,
    /// What the object was before, where that is known; watches with selectors need it.
    pub before: Option<Arc<Revision>>,
    pub(super) parsed: OnceLock<Value>,
    watch_text: OnceLock<Bytes>,
}

impl Revision {
    /// A mutation that gave an object this version and text.
    pub fn new(rv: u64, change: Change, key: ObjectKey, text: Bytes, before: Option<Arc<Self>>) -> Self {
        Self {
            rv,
            change,
            key,
            text,
            before,
            parsed: OnceLock::new(),
            watch_text: OnceLock::new(),
        }
    }

    /// A mutation whose text nobody needs to parse, cut off from what came before it.
    pub(super) fn with_object(rv: u64, change: Change, key: ObjectKey, text: Bytes, object: Value) -> Self {
        Self {
            parsed: OnceLock::from(object),
            ..Self::new(rv, change, key, text, None)
        }
    }

    /// The same revision cut off from what came before it.
    pub(super) fn without_history(&self) -> Self {
        Self::new(self.rv, self.change, self.key.clone(), self.text.clone(), None)
    }

    /// The text of the watch event, made by the first watch and shared by all.
    pub(crate) fn watch_text(&self, make: impl FnOnce(Bytes) -> Bytes) -> Bytes {
        self.watch_text.get_or_init(|| make(self.text.clone())).clone()
    }

    /// The object, parsed on first use.
    pub(crate) fn object(&self) -> Result<&Value, StoreError> {
        if let Some(value) = self.parsed.get() {
            return Ok(value);
        }
        let value = serde_json::from_slice(&self.text).map_err(|source| StoreError::Damaged { rv: self.rv, source })?;
        Ok(self.parsed.get_or_init(|| value))
    }
}
