//! Drops the texts that rows had in a version, once the version is dropped.

use kindex_model::kind::Kind;
use kindex_store::progress::Progress;
use kindex_store::{StoreError, VersionConversion};

use super::options::Options;
use crate::retries::with_retries;

/// Removes the texts that rows of a kind had in `version`, such as `v1`, and says how many there were. Texts of other
/// versions stay. Interrupted, it can simply be repeated.
///
/// # Assumptions
/// No row needs to become again what it was: the version is dropped.
///
/// # Errors
/// If the database does not answer within the retry budget.
pub async fn drop_kept(
    storage: &dyn VersionConversion,
    kind: &Kind,
    version: &str,
    options: &Options,
    progress: &dyn Progress,
) -> Result<u64, StoreError> {
    let group_ver = format!("{}/{version}", kind.group);
    progress.begin(&format!("drop texts of {} {version}", kind.name), None);
    let (mut after, mut texts) = (None, 0);
    loop {
        let call = || storage.drop_kept_texts(kind, &group_ver, after.as_ref(), options.page_rows);
        let dropped = with_retries(options.retry_budget, call).await?;
        texts += dropped.texts;
        progress.advance(dropped.texts);
        if dropped.last.is_none() {
            progress.end();
            return Ok(texts);
        }
        after = dropped.last;
    }
}
