//! How texts in the archive are changed: those of what is being deleted there, and of holders that were moved.

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_model::object::Object as Text;
use kindex_query::Stored;
use kindex_store::{DirectError, StoreError};

use super::SqlArchive;
use super::rows::failed;
use crate::archive::ArchiveError;
use crate::kinds::key_of;

impl SqlArchive {
    /// An archived object in the kind's own version, in which changes are made, whichever the stored text has.
    pub(super) fn own_form(&self, kind: &Kind, found: &Stored) -> Result<Text, ArchiveError> {
        let own = kindex_convert::object_in(&self.registry.platform, kind, &found.object, kind.version);
        own.map_err(|error| ArchiveError::wrong(error.to_string()))
    }

    /// Gives an archived object that is as it was read another text. Whether it was.
    pub(super) async fn rewrite(
        &self,
        kind: &'static Kind,
        found: &Stored,
        text: serde_json::Result<String>,
        now: Timestamp,
    ) -> Result<bool, ArchiveError> {
        let wanted = text
            .map_err(|error| error.to_string())
            .and_then(|text| Text::parse_str(&text).map_err(|error| error.to_string()));
        let key = key_of(kind, &found.object);
        let wanted = wanted.map_err(|error| ArchiveError::wrong(format!("{key}: {error}")))?;
        match self.store.update_direct(kind, &wanted, now).await {
            Ok(_) => Ok(true),
            Err(StoreError::Direct {
                source: DirectError::Conflict { .. } | DirectError::Deleted(_) | DirectError::Live,
                ..
            }) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }
}
