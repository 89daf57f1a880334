//! The target and the options of a release.

use std::sync::Arc;
use std::time::Duration;

use kindex_kube_client::WriteApi;
use kindex_model::kind::Platform;
use kindex_store::IngesterStorage;

use crate::retries::RetryBudget;

/// The target of a release.
#[derive(Clone)]
pub struct ReleaseSides {
    /// The platform whose finalizers are removed.
    pub platform: Platform,
    /// The cluster with the objects.
    pub cluster: Arc<dyn WriteApi>,
    /// The store that must hold them; `None`: without SQL, and without a check for running services.
    pub storage: Option<Arc<dyn IngesterStorage>>,
}

/// The options of a release.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only count, without changes.
    pub dry_run: bool,
    /// Most objects per second; `None`: no limit.
    pub objects_per_second: Option<f64>,
    /// How long a running service may take to react to a change.
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
