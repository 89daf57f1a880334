//! Where objects are released, and how.

use std::sync::Arc;
use std::time::Duration;

use kindex_kube_client::ClusterApi;
use kindex_model::kind::Platform;
use kindex_store::IngesterStorage;

use crate::retries::RetryBudget;

/// Where objects are released.
#[derive(Clone)]
pub struct Place {
    /// Its finalizer is removed.
    pub platform: Platform,
    /// Where the objects are.
    pub cluster: Arc<dyn ClusterApi>,
    /// What has to hold them; `None`: SQL is not asked, and nobody looks for an ingester.
    pub storage: Option<Arc<dyn IngesterStorage>>,
}

/// How a release goes about it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Change nothing; count.
    pub dry_run: bool,
    /// At most so many objects a second; `None`: as fast as it goes.
    pub objects_per_second: Option<f64>,
    /// How long an ingester that is at work may take to store a change.
    pub settle: Duration,
    /// Objects a page.
    pub page_rows: u32,
    /// How long failures in a row are retried.
    pub retry_budget: RetryBudget,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dry_run: false,
            objects_per_second: None,
            settle: Duration::from_secs(2),
            page_rows: 500,
            retry_budget: RetryBudget::default(),
        }
    }
}
