//! What `/metrics` shows: the ingester's metrics, with those of the process beside them,
//! in the text format of Prometheus. Counts nothing itself.

use prometheus::process_collector::ProcessCollector;
use prometheus::{IntGauge, Opts, Registry, TextEncoder};

/// Everything that a scrape shows.
pub(crate) struct Exposition {
    registry: Registry,
    ready: IntGauge,
}

impl Exposition {
    /// These metrics and those of the process.
    pub(crate) fn new(registry: Registry) -> Self {
        let ready = Opts::new("kindex_ready", "1 while /readyz returns 200.");
        let ready = IntGauge::with_opts(ready).expect("the name is valid");
        let build = Opts::new("kindex_build_info", "Always 1. The label is the running version.")
            .const_label("version", env!("CARGO_PKG_VERSION"));
        let build = IntGauge::with_opts(build).expect("names and labels are valid");
        build.set(1);
        for collector in [
            Box::new(ready.clone()) as Box<dyn prometheus::core::Collector>,
            Box::new(build),
            Box::new(ProcessCollector::for_self()),
        ] {
            registry.register(collector).expect("each name is registered once");
        }
        Self { registry, ready }
    }

    /// The text of one scrape.
    pub(crate) fn text(&self, ready: bool) -> Result<String, prometheus::Error> {
        self.ready.set(ready.into());
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}
