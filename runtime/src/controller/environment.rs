//! What all parts of a controller share in a step: the kind, its settings, both clocks, the random generator and the
//! outputs so far.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kindex_kube_client::ObjectName;
use kindex_model::head::Head;
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::Object;
use kindex_model::reference_name::ReferenceName;
use kindex_store::backoff;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::message::{Now, Output, StoreFailure};
use crate::metrics::KindMetrics;
use crate::settings::Settings;

pub(super) struct Environment {
    pub(super) kind: &'static Kind,
    pub(super) platform: Platform,
    owned: Vec<&'static Kind>,
    pub(super) settings: Settings,
    pub(super) metrics: Arc<KindMetrics>,
    pub(super) now: Now,
    pub(super) stopping: bool,
    pub(super) last_error: Option<String>,
    rng: StdRng,
    outputs: Vec<Output>,
}

impl Environment {
    /// `owned`: the kinds whose objects those of `kind` may own. `seed` determines the jitter of all pauses.
    pub(super) fn new(
        kind: &'static Kind,
        platform: Platform,
        owned: Vec<&'static Kind>,
        settings: Settings,
        metrics: Arc<KindMetrics>,
        seed: u64,
    ) -> Self {
        Self {
            kind,
            platform,
            owned,
            settings,
            metrics,
            now: Now {
                wall: Timestamp::UNIX_EPOCH,
                elapsed: Duration::ZERO,
            },
            stopping: false,
            last_error: None,
            rng: StdRng::seed_from_u64(seed),
            outputs: Vec::new(),
        }
    }

    /// Adds an output of the step.
    pub(super) fn emit(&mut self, output: Output) {
        self.outputs.push(output);
    }

    pub(super) fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    pub(super) fn head(&self, object: &Object) -> Head {
        Head::of(object, self.kind, &self.platform)
    }

    /// Whether objects of the kind may own others in the cluster.
    pub(super) fn may_own(&self) -> bool {
        !self.owned.is_empty()
    }

    /// Whether a reference on the object is of something that it owns. Those of archived objects are in SQL.
    pub(super) fn owns(&self, object: &Object) -> bool {
        let finalizers = object.metadata.finalizers.iter();
        let mut holders = finalizers.filter_map(|finalizer| ReferenceName::of_finalizer(finalizer));
        holders.any(|holder| {
            let is_it = |kind: &&Kind| holder.kind().eq_ignore_ascii_case(kind.name) && holder.group() == kind.group;
            self.owned.iter().any(is_it)
        })
    }

    /// The backoff after so many attempts that came to nothing.
    pub(super) fn backoff(&mut self, attempts: u32, cause: &'static str) -> Duration {
        let most = self.settings.requeue_period;
        backoff::pause(attempts, backoff::base(cause), most, &mut self.rng)
    }

    pub(super) fn note_store_failure(&mut self, what: &str, failure: &StoreFailure) {
        self.note_batch_failure(what, failure, None, false);
    }

    /// Logs a failed batch. The store logs an outage once for all kinds; a deletion that waits for its end is logged
    /// here.
    pub(super) fn note_batch_failure(
        &mut self,
        what: &str,
        failure: &StoreFailure,
        object: Option<&ObjectName>,
        is_awaited: bool,
    ) {
        self.metrics.retry(failure.cause);
        let (kind, cause, message) = (self.kind.name, failure.cause, &failure.message);
        let object = object.map(tracing::field::display);
        if failure.is_outage && !is_awaited {
            tracing::debug!(kind, object, cause, "{what}: {message}");
        } else {
            tracing::warn!(kind, object, cause, "{what}: {message}");
        }
        self.last_error = Some(format!("{what}: {}", failure.message));
    }
}
