//! Events live for an hour after they last happened, as on any cluster.

use jiff::{SignedDuration, Timestamp};
use kindex_kube_api::status::Status;
use serde_json::Value;

use super::CHUNK;
use crate::api::Api;
use crate::mutate::{self, DeleteOptions, store_failed};
use crate::store::PageRequest;

const LIFETIME: SignedDuration = SignedDuration::from_hours(1);
const STORAGE: &str = "events";

/// Deletes events whose hour is over.
pub(super) async fn expire(api: &Api) -> Result<(), Status> {
    let Some(resource) = api.registry.catalog().of_storage(STORAGE) else {
        return Ok(());
    };
    let now = api.now();
    let mut request = PageRequest {
        resource: STORAGE.to_owned(),
        limit: Some(CHUNK),
        ..PageRequest::default()
    };
    loop {
        let page = api.store.list(&request).await.map_err(|error| store_failed(&error))?;
        for revision in &page.objects {
            let event = revision.object().map_err(|error| store_failed(&error))?;
            if last_happened(event).is_some_and(|at| now.duration_since(at) > LIFETIME) {
                match mutate::delete(api, &resource, &revision.key, &DeleteOptions::default()).await {
                    Err(status) if !status.outcome().is_not_found() => return Err(status),
                    _ => {}
                }
            }
        }
        if page.objects.len() < CHUNK as usize {
            return Ok(());
        }
        request.after = page
            .objects
            .last()
            .map(|last| (last.key.namespace.clone(), last.key.name.clone()));
    }
}

fn last_happened(event: &Value) -> Option<Timestamp> {
    let times = [
        &event["metadata"]["creationTimestamp"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["series"]["lastObservedTime"],
    ];
    times.into_iter().filter_map(|time| time.as_str()?.parse().ok()).max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_series_that_goes_on_keeps_its_event_young() {
        let event = json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "series": {"lastObservedTime": "2026-01-01T05:00:00.000001Z"}});
        assert_eq!(
            last_happened(&event),
            Some("2026-01-01T05:00:00.000001Z".parse().unwrap())
        );
        assert_eq!(last_happened(&json!({})), None);
    }
}
