//! Rows of archived and deleted objects whose text is in another version than the kind's own: finding them, giving
//! them a converted text, and the texts that they had before. Converts nothing itself, and never finds a live row:
//! these follow the cluster.

mod sql;

mod pages;

mod batch;

mod kept;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Uid;
use kindex_model::projection::{ContentHash, Version};
use kindex_model::row_version::RowVersion;

use crate::driver::Driver;
use crate::error::StoreError;
use crate::packed;
use crate::row::Arrival;
use crate::sql_store::SqlStore;

pub(crate) use kept::forget;

/// A row whose text is in another version than the kind's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherVersionRow {
    /// The row's primary key.
    pub arrival: Arrival,
    /// The object's uid.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `group/version` of the text.
    pub group_ver: String,
    /// What `res_version` holds.
    pub res_version: RowVersion,
    /// `None` in rows that another program wrote.
    pub hash: Option<ContentHash>,
    /// The object's text.
    pub text: String,
}

/// What was found in a part of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherVersionPage {
    /// The rows in another version, in order of arrival.
    pub rows: Vec<OtherVersionRow>,
    /// The last row of the part, after which the next one begins; `None` at the end of the table.
    pub last: Option<Arrival>,
    /// How many rows the part has, in whichever version; fewer where the texts did not fit a page.
    pub walked: u64,
}

/// What a row gets, and what it must still hold to get it.
#[derive(Clone, Debug)]
pub struct RowConversion {
    row: OtherVersionRow,
    version: Arc<Version>,
    /// The text before, compressed.
    payload: Vec<u8>,
}

impl RowConversion {
    /// Gives a row the content of `version`, which is the same object in the kind's own version. Compresses the text
    /// that the row has.
    pub fn new(row: OtherVersionRow, version: Arc<Version>) -> Self {
        let payload = packed::pack_fast(&row.text);
        Self { row, version, payload }
    }

    /// The row as it was read.
    pub fn row(&self) -> &OtherVersionRow {
        &self.row
    }
}

/// What became of one [`RowConversion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowConverted {
    /// The row has the new content, and the text before is kept.
    Converted,
    /// The row is no longer as it was read: somebody wrote, revived or removed it. Nothing was written.
    Superseded,
}

/// A text that a row had before it was converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptText {
    /// `group/version` of the text.
    pub group_ver: String,
    /// The row's `res_version` when it was converted.
    pub res_version: RowVersion,
    /// The exact text.
    pub text: String,
}

/// Kept texts that were removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DroppedTexts {
    /// How many.
    pub texts: u64,
    /// The last object that was looked at, after which the next call begins; `None` at the end.
    pub last: Option<Uid>,
}

/// The store as `kindex versions convert` sees it.
#[async_trait]
pub trait VersionConversion: Send + Sync {
    /// Walks over at most `limit` rows in order of arrival, after one place and up to another, and finds the rows of
    /// archived and deleted objects whose `group_ver` is not the kind's own. One call reads one range of the primary
    /// key, and so all calls together the table once.
    async fn rows_of_other_versions(
        &self,
        kind: &'static Kind,
        after: Option<Arrival>,
        until: Option<Arrival>,
        limit: u32,
    ) -> Result<OtherVersionPage, StoreError>;

    /// Gives rows their converted content in one transaction, and says what became of each, in order. With them it
    /// saves `progress` as [`WorkState`](crate::WorkState) `(kind, `[`PROGRESS`]`)`.
    ///
    /// # Guarantees
    /// A row is only changed while it is archived or deleted, and has the version, the resource version and the hash
    /// that were read; this is checked under its lock. `res_version` and all times keep their values. The text before
    /// is kept in the same transaction. No history changes.
    ///
    /// # Errors
    /// `Refused` speaks of the batch as a whole: halve it to find the row that is to blame.
    async fn convert_rows(
        &self,
        kind: &'static Kind,
        rows: &[RowConversion],
        progress: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<RowConverted>, StoreError>;

    /// The texts that an object's row had before it was converted, in order of version and resource version.
    async fn kept_texts(&self, kind: &Kind, uid: &Uid) -> Result<Vec<KeptText>, StoreError>;

    /// Removes the kept texts of a version, `group/version`, from the next `limit` kept texts of the kind.
    async fn drop_kept_texts(
        &self,
        kind: &Kind,
        group_ver: &str,
        after: Option<&Uid>,
        limit: u32,
    ) -> Result<DroppedTexts, StoreError>;
}

/// The name under which the progress of a conversion is saved for a kind.
pub const PROGRESS: &str = "convert";

#[async_trait]
impl<D: Driver> VersionConversion for SqlStore<D> {
    async fn rows_of_other_versions(
        &self,
        kind: &'static Kind,
        after: Option<Arrival>,
        until: Option<Arrival>,
        limit: u32,
    ) -> Result<OtherVersionPage, StoreError> {
        pages::read(&self.connections, kind, after, until, limit).await
    }

    async fn convert_rows(
        &self,
        kind: &'static Kind,
        rows: &[RowConversion],
        progress: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<RowConverted>, StoreError> {
        batch::write(self, kind, rows, progress, now).await
    }

    async fn kept_texts(&self, kind: &Kind, uid: &Uid) -> Result<Vec<KeptText>, StoreError> {
        kept::of_row(&self.connections, kind, uid).await
    }

    async fn drop_kept_texts(
        &self,
        kind: &Kind,
        group_ver: &str,
        after: Option<&Uid>,
        limit: u32,
    ) -> Result<DroppedTexts, StoreError> {
        kept::drop_version(&self.connections, kind, group_ver, after, limit).await
    }
}
