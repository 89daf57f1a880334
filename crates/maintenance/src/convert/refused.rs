//! How many rows the last conversion of a kind could not convert, saved for the verdict on dropping their version.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kindex_model::kind::Kind;
use kindex_store::{StoreError, WorkState};

/// The name under which it is saved.
const NAME: &str = "convert-refused";

/// Rows by `group/version` that the last conversion that ended could not convert.
///
/// # Errors
/// If the database does not answer.
pub async fn refused_rows<S: WorkState + ?Sized>(store: &S, kind: &Kind) -> Result<BTreeMap<String, u64>, StoreError> {
    let saved = store.state(kind, NAME).await?;
    // What another program saved under this name says nothing of ours.
    Ok(saved
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default())
}

/// Saves that for the conversion that ends now.
pub(super) async fn save<S: WorkState + ?Sized>(
    store: &S,
    kind: &Kind,
    refused: &BTreeMap<String, u64>,
) -> Result<(), StoreError> {
    if refused.is_empty() {
        return store.forget_state(kind, NAME).await;
    }
    let text = serde_json::to_string(refused).expect("names and numbers are JSON");
    store.save_state(kind, NAME, &text, Timestamp::now()).await
}
