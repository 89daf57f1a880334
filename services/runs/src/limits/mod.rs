//! What a request may hold, in one table for both transports: validation reads it, and the tests of the boundaries and
//! of the reference page walk it. Knows no request.

mod name_rules;

pub use name_rules::{NameFault, NameRules};

/// In what a limit is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Unicode characters of a text.
    Characters,
    /// Bytes, of a text in UTF-8.
    Bytes,
    /// Things of a list.
    Items,
    /// Seconds.
    Seconds,
}

/// What becomes of what is over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// The request is refused, and nothing of it is stored.
    Refused,
    /// The item is dropped with a warning of this code; the rest is stored.
    Dropped(&'static str),
    /// What is over is dropped with a warning of this code; what comes first is stored.
    Cut(&'static str),
    /// The largest value is used instead.
    Clamped,
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Of what, as messages and pages say it.
    pub of: &'static str,
    /// The most.
    pub max: usize,
    /// Counted in this.
    pub unit: Unit,
    /// What happens beyond.
    pub enforcement: Enforcement,
}

impl Limit {
    /// How much of it a text is.
    #[must_use]
    pub fn size(&self, text: &str) -> usize {
        match self.unit {
            Unit::Characters => text.chars().count(),
            Unit::Bytes | Unit::Items | Unit::Seconds => text.len(),
        }
    }

    /// Whether a text is within it. A text is never cut, so no character ever is.
    #[must_use]
    pub fn holds(&self, text: &str) -> bool {
        // A character has at least one byte.
        text.len() <= self.max || (self.unit == Unit::Characters && self.size(text) <= self.max)
    }

    const fn refused(of: &'static str, max: usize, unit: Unit) -> Self {
        let enforcement = Enforcement::Refused;
        Self {
            of,
            max,
            unit,
            enforcement,
        }
    }

    const fn dropped(of: &'static str, max: usize, unit: Unit, code: &'static str) -> Self {
        let enforcement = Enforcement::Dropped(code);
        Self {
            of,
            max,
            unit,
            enforcement,
        }
    }

    const fn cut(of: &'static str, max: usize, unit: Unit, code: &'static str) -> Self {
        let enforcement = Enforcement::Cut(code);
        Self {
            of,
            max,
            unit,
            enforcement,
        }
    }

    const fn clamped(of: &'static str, max: usize) -> Self {
        let (unit, enforcement) = (Unit::Items, Enforcement::Clamped);
        Self {
            of,
            max,
            unit,
            enforcement,
        }
    }
}

/// A share of a soft limit at which a warning is due.
pub const WARN_PERCENT: u64 = 80;

/// Declares the limits as constants and as a table.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident = $limit:expr;)+) => {
        $($(#[doc = $doc])+ pub const $name: Limit = $limit;)+

        /// All limits, in the order of the reference page.
        pub const ALL: &[Limit] = &[$($name),+];
    };
}

limits! {
    /// The name of a project.
    PROJECT_NAME = Limit::refused("project name", 128, Unit::Characters);
    /// The id of a run, its own or that of a parent.
    RUN_ID = Limit::refused("run id", 64, Unit::Characters);
    /// The name of a run.
    RUN_NAME = Limit::refused("run name", 256, Unit::Characters);
    /// The description of a run.
    RUN_DESCRIPTION = Limit::refused("run description", 4096, Unit::Bytes);
    /// A text of the machine or the checkout of a run.
    ENVIRONMENT_TEXT = Limit::refused("text of system_info or git_info", 1024, Unit::Bytes);
    /// The GPUs of a run's machine.
    GPUS = Limit::refused("GPUs", 64, Unit::Items);
    /// The id of a batch.
    BATCH_ID = Limit::refused("batch id", 64, Unit::Characters);
    /// The points of a batch.
    BATCH_POINTS = Limit::cut("points in a batch", 10_000, Unit::Items, "BATCH_TRUNCATED");
    /// The size of a batch as protobuf, without compression.
    BATCH_BYTES = Limit::cut("batch", 1_048_576, Unit::Bytes, "BATCH_TRUNCATED");
    /// A request as it comes, after unpacking.
    TRANSPORT_BYTES = Limit::refused("request", 4 * 1024 * 1024, Unit::Bytes);
    /// The name of a metric.
    METRIC_NAME = Limit::dropped("metric name", 256, Unit::Characters, "INVALID_METRIC_NAME");
    /// The name of a parameter.
    PARAM_NAME = Limit::dropped("parameter name", 256, Unit::Characters, "INVALID_PARAM");
    /// The value of a parameter.
    PARAM_VALUE = Limit::dropped("parameter value", 4096, Unit::Bytes, "INVALID_PARAM");
    /// The parameters of a request.
    PARAMS_IN_REQUEST = Limit::refused("parameters in a request", 1000, Unit::Items);
    /// The parameters of a run.
    PARAMS_OF_RUN = Limit::dropped("parameters of a run", 10_000, Unit::Items, "PARAM_LIMIT_EXCEEDED");
    /// The key of a tag.
    TAG_KEY = Limit::dropped("tag key", 128, Unit::Characters, "INVALID_TAG");
    /// The value of a tag.
    TAG_VALUE = Limit::dropped("tag value", 1024, Unit::Bytes, "INVALID_TAG");
    /// The tags of a request, and the keys to remove.
    TAGS_IN_REQUEST = Limit::refused("tags in a request", 1000, Unit::Items);
    /// The tags of a run.
    TAGS_OF_RUN = Limit::dropped("tags of a run", 1000, Unit::Items, "TAG_LIMIT_EXCEEDED");
    /// The metric names of a run.
    METRIC_NAMES_OF_RUN = Limit::dropped("metric names of a run", 10_000, Unit::Items, "CARDINALITY_LIMIT_EXCEEDED");
    /// The entries of the summary of a run.
    SUMMARY = Limit::refused("entries of the summary", 1000, Unit::Items);
    /// The error message of a run that ends.
    ERROR_MESSAGE = Limit::refused("error message", 65_536, Unit::Bytes);
    /// The warnings of an answer; the last one counts those that are left out.
    WARNINGS = Limit::cut("warnings in an answer", 100, Unit::Items, "WARNINGS_TRUNCATED");
    /// The name of an artifact.
    ARTIFACT_NAME = Limit::refused("artifact name", 512, Unit::Characters);
    /// The MIME type of an artifact.
    MIME_TYPE = Limit::refused("MIME type", 255, Unit::Bytes);
    /// The size of an artifact.
    ARTIFACT_BYTES = Limit::refused("artifact", 5 * 1024 * 1024 * 1024, Unit::Bytes);
    /// The artifacts of a run.
    ARTIFACTS_OF_RUN = Limit::refused("artifacts of a run", 10_000, Unit::Items);
    /// The uploads of a run that are under way.
    UPLOADS_OF_RUN = Limit::refused("open uploads of a run", 100, Unit::Items);
    /// The two-way streams that are open.
    STREAMS = Limit::refused("open streams", 256, Unit::Items);
    /// The two-way streams of one API key; without keys, of all clients.
    STREAMS_OF_CALLER = Limit::refused("open streams of a caller", 128, Unit::Items);
    /// How long a two-way stream may say nothing.
    STREAM_SILENCE = Limit::refused("silence of a stream", 600, Unit::Seconds);
    /// A page of a list.
    PAGE = Limit::clamped("runs or artifacts in a page", 1000);
    /// A page of search results.
    SEARCH_PAGE = Limit::clamped("results in a page", 500);
    /// The text of a search.
    SEARCH_QUERY = Limit::refused("search query", 500, Unit::Characters);
    /// A pattern of names.
    NAME_PATTERN = Limit::refused("name pattern", 512, Unit::Characters);
    /// The tags of a filter.
    TAG_FILTERS = Limit::refused("tag filters", 20, Unit::Items);
    /// The parameters of a filter.
    PARAM_FILTERS = Limit::refused("parameter filters", 20, Unit::Items);
    /// The runs whose metrics are read at once.
    METRICS_RUNS = Limit::refused("runs in GetMetrics", 10, Unit::Items);
    /// The names of metrics that are read at once.
    METRICS_NAMES = Limit::refused("metric names in GetMetrics", 50, Unit::Items);
    /// The points of each series that is read.
    METRICS_POINTS = Limit::clamped("max_points of GetMetrics", 10_000);
    /// The runs that are compared.
    COMPARED_RUNS = Limit::refused("runs in CompareRuns", 20, Unit::Items);
    /// The metrics that are compared.
    COMPARED_NAMES = Limit::refused("metric names in CompareRuns", 20, Unit::Items);
    /// The points of each series that is compared.
    COMPARED_POINTS = Limit::clamped("max_points of CompareRuns", 5000);
}

/// Runs in a page unless the request says otherwise.
pub const PAGE_DEFAULT: usize = 50;
/// Points of a series unless the request says otherwise.
pub const METRICS_POINTS_DEFAULT: usize = 1000;
/// Points of a compared series unless the request says otherwise.
pub const COMPARED_POINTS_DEFAULT: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_measured_in_the_unit_of_its_limit() {
        let three_bytes_each = "\u{20ac}".repeat(256);
        assert!(METRIC_NAME.holds(&three_bytes_each));
        assert!(!METRIC_NAME.holds(&"\u{20ac}".repeat(257)));
        assert!(TAG_VALUE.holds(&"\u{20ac}".repeat(341)));
        assert!(!TAG_VALUE.holds(&"\u{20ac}".repeat(342)));
    }

    #[test]
    fn every_limit_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<&str> = ALL.iter().map(|limit| limit.of).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
