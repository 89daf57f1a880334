//! How rows of the archive are read: as holders, and found by the columns in which they name an object.

use kindex_model::kind::Kind;
use kindex_model::reference_name::ReferenceName;
use kindex_query::select::Condition;
use kindex_query::{Life, Stored};
use kindex_store::{StoreError, select_naming};

use super::{PAGE_ROWS, SqlArchive};
use crate::archive::{ArchiveError, Holder, HolderPosition, HolderScope, Page};
use crate::decide::Seen;
use crate::object::{Key, KindName};

impl SqlArchive {
    pub(super) fn kind(&self, name: &KindName) -> Result<&'static Kind, ArchiveError> {
        let found = self.kinds.get(name);
        found.ok_or_else(|| ArchiveError::wrong(format!("{name} is not a kind of the graph")))
    }

    pub(super) fn holder(&self, kind: &'static Kind, stored: &Stored, reference: Option<ReferenceName>) -> Holder {
        let read = self.kinds.read_stored(&self.registry.platform, kind, &stored.object);
        let is_archived = stored.life == Life::Archived;
        Holder {
            key: Some(read.key),
            uid: read.uid,
            reference,
            version: is_archived.then_some(read.version),
            edges: read.edges,
        }
    }

    /// What names an object by one field.
    pub(super) async fn naming(
        &self,
        target: &Seen,
        scope: HolderScope,
        at: usize,
        token: Option<&str>,
    ) -> Result<Page, ArchiveError> {
        let Key { kind, namespace, name } = &target.key;
        let Some((holder, field)) = self.kinds.referrers(kind).nth(at) else {
            return Ok(Page::default());
        };
        let namespace = Some(&**namespace).filter(|namespace| !namespace.is_empty());
        let mut select = select_naming(holder, field, &kind.kind, namespace, name);
        if scope == HolderScope::Archived {
            let is_archived = Condition::NotNull { column: "evicted_time" };
            select.conditions.push(is_archived);
        }
        select.limit = Some(PAGE_ROWS);
        let page = self.store.select(&select, token).await.map_err(failed)?;
        let holders = page.items.iter().map(|stored| self.holder(holder, stored, None));
        let names = |holder: &Holder| holder.edges.iter().any(|edge| edge.target == target.key);
        let next = match page.continue_token {
            Some(token) => HolderPosition::Naming(at, Some(token)),
            None => HolderPosition::Naming(at + 1, None),
        };
        Ok(Page {
            holders: holders.filter(names).collect(),
            next: Some(next),
        })
    }
}

pub(super) fn failed(error: StoreError) -> ArchiveError {
    let is_outage = error.is_outage();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    ArchiveError { what: text, is_outage }
}
