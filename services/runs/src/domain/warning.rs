//! Every warning that an answer can carry, made in one place: a request with a warning was accepted but for what the
//! warning says.

use crate::wire::v1::{ErrorDetail, ErrorSeverity};

/// A point whose name does not fit was dropped.
pub const INVALID_METRIC_NAME: &str = "INVALID_METRIC_NAME";
/// Points over the bound of a batch were dropped.
pub const BATCH_TRUNCATED: &str = "BATCH_TRUNCATED";
/// The batch was stored before.
pub const DUPLICATE_BATCH: &str = "DUPLICATE_BATCH";
/// Timestamps were replaced by the time of receipt.
pub const CLOCK_SKEW: &str = "CLOCK_SKEW";
/// A point with a negative step was dropped.
pub const STEP_NEGATIVE: &str = "STEP_NEGATIVE";
/// The batch came after batches that follow it, and was applied last.
pub const SEQUENCE_LATE: &str = "SEQUENCE_LATE";
/// The run has nearly as many metrics as it can have.
pub const CARDINALITY_LIMIT_APPROACHING: &str = "CARDINALITY_LIMIT_APPROACHING";
/// Points of new metrics were dropped: the run has as many as it can have.
pub const CARDINALITY_LIMIT_EXCEEDED: &str = "CARDINALITY_LIMIT_EXCEEDED";
/// The parameter has another value, which stays.
pub const PARAM_IMMUTABLE: &str = "PARAM_IMMUTABLE";
/// A parameter that does not fit was dropped.
pub const INVALID_PARAM: &str = "INVALID_PARAM";
/// Parameters were dropped: the run has as many as it can have.
pub const PARAM_LIMIT_EXCEEDED: &str = "PARAM_LIMIT_EXCEEDED";
/// A tag that does not fit was dropped.
pub const INVALID_TAG: &str = "INVALID_TAG";
/// Tags were dropped: the run has as many as it can have.
pub const TAG_LIMIT_EXCEEDED: &str = "TAG_LIMIT_EXCEEDED";
/// Another process seems to write to the run.
pub const RUN_ALREADY_ACTIVE: &str = "RUN_ALREADY_ACTIVE";
/// What InitRun says of a run that exists differs from what is stored, which stays.
pub const RUN_ATTRIBUTE_KEPT: &str = "RUN_ATTRIBUTE_KEPT";
/// The project has as many running runs as it should have.
pub const ACTIVE_RUNS_EXCEEDED: &str = "ACTIVE_RUNS_EXCEEDED";
/// There were more warnings than an answer holds.
pub const WARNINGS_TRUNCATED: &str = "WARNINGS_TRUNCATED";

/// Every code, for the reference and for the tests.
pub const CODES: [&str; 17] = [
    INVALID_METRIC_NAME,
    BATCH_TRUNCATED,
    DUPLICATE_BATCH,
    CLOCK_SKEW,
    STEP_NEGATIVE,
    SEQUENCE_LATE,
    CARDINALITY_LIMIT_APPROACHING,
    CARDINALITY_LIMIT_EXCEEDED,
    PARAM_IMMUTABLE,
    INVALID_PARAM,
    PARAM_LIMIT_EXCEEDED,
    INVALID_TAG,
    TAG_LIMIT_EXCEEDED,
    RUN_ALREADY_ACTIVE,
    RUN_ATTRIBUTE_KEPT,
    ACTIVE_RUNS_EXCEEDED,
    WARNINGS_TRUNCATED,
];

fn warning(code: &str, field: impl Into<String>, message: impl Into<String>) -> ErrorDetail {
    ErrorDetail {
        code: code.to_owned(),
        message: message.into(),
        field: field.into(),
        severity: ErrorSeverity::Warning.into(),
    }
}

/// The point at a place has no valid name, for a reason.
#[must_use]
pub fn invalid_metric_name(point: usize, why: &str) -> ErrorDetail {
    let message = format!("The point was dropped: its name {why}.");
    warning(INVALID_METRIC_NAME, format!("metrics.points[{point}].name"), message)
}

/// The point at a place has a negative step.
#[must_use]
pub fn step_negative(point: usize, step: i64) -> ErrorDetail {
    let message = format!("The point was dropped: its step {step} is negative. Steps count from 0.");
    warning(STEP_NEGATIVE, format!("metrics.points[{point}].step"), message)
}

/// Points from a place on were over a bound, such as "10000 points".
#[must_use]
pub fn batch_truncated(dropped: u64, bound: &str) -> ErrorDetail {
    let message = format!("The last {dropped} points were dropped: a batch has at most {bound}. Send smaller batches.");
    warning(BATCH_TRUNCATED, "metrics.points", message)
}

/// Timestamps of some points were replaced.
#[must_use]
pub fn clock_skew(points: u64, first: usize) -> ErrorDetail {
    let message = format!(
        "The timestamps of {points} points were replaced by the time of receipt: they are more than five minutes \
         ahead of the server, or no time at all. Check the clock of the machine."
    );
    warning(CLOCK_SKEW, format!("metrics.points[{first}].timestamp"), message)
}

/// The batch is known.
#[must_use]
pub fn duplicate_batch() -> ErrorDetail {
    warning(
        DUPLICATE_BATCH,
        "batch_id",
        "The batch was stored before; nothing was changed.",
    )
}

/// The batch belongs before others that were applied.
#[must_use]
pub fn sequence_late(sequence: i64, expected: i64) -> ErrorDetail {
    let message = format!("Sequence {sequence} came late, {expected} was expected: the batch was applied as the last.");
    warning(SEQUENCE_LATE, "sequence", message)
}

/// The run has many metrics.
#[must_use]
pub fn cardinality_approaching(names: u64, limit: u64) -> ErrorDetail {
    let message = format!("The run has {names} metrics, at most {limit} are stored. Use fewer names.");
    warning(CARDINALITY_LIMIT_APPROACHING, "metrics.points", message)
}

/// The run has as many metrics as it can have.
#[must_use]
pub fn cardinality_exceeded(names: u64, points: u64, limit: u64) -> ErrorDetail {
    let message = format!(
        "{points} points of {names} new metrics were dropped: the run has {limit}, the most that are stored. \
         Points of its other metrics are stored."
    );
    warning(CARDINALITY_LIMIT_EXCEEDED, "metrics.points", message)
}

/// The parameter has another value.
#[must_use]
pub fn param_immutable(name: &str) -> ErrorDetail {
    let message = format!("Parameter {name:?} keeps its first value; the new one was dropped.");
    warning(PARAM_IMMUTABLE, format!("params[{name}]"), message)
}

/// The parameter at a place does not fit, for a reason.
#[must_use]
pub fn invalid_param(place: usize, why: &str) -> ErrorDetail {
    let message = format!("The parameter was dropped: {why}.");
    warning(INVALID_PARAM, format!("params[{place}]"), message)
}

/// The run has as many parameters as it can have.
#[must_use]
pub fn param_limit_exceeded(dropped: u64, limit: u64) -> ErrorDetail {
    let message = format!("{dropped} parameters were dropped: the run has {limit}, the most that are stored.");
    warning(PARAM_LIMIT_EXCEEDED, "params", message)
}

/// The tag at a place does not fit, for a reason.
#[must_use]
pub fn invalid_tag(place: usize, why: &str) -> ErrorDetail {
    let message = format!("The tag was dropped: {why}.");
    warning(INVALID_TAG, format!("tags[{place}]"), message)
}

/// The run has as many tags as it can have.
#[must_use]
pub fn tag_limit_exceeded(dropped: u64, limit: u64) -> ErrorDetail {
    let message = format!("{dropped} tags were dropped: the run has {limit}, the most that are stored.");
    warning(TAG_LIMIT_EXCEEDED, "tags", message)
}

/// The run was heard of a moment ago.
#[must_use]
pub fn run_already_active(seconds: i64) -> ErrorDetail {
    let message = format!(
        "The run was heard of {seconds} seconds ago: if another process writes to it, give this one a run of its own."
    );
    warning(RUN_ALREADY_ACTIVE, "run_id", message)
}

/// The run has another value of a field of InitRun.
#[must_use]
pub fn run_attribute_kept(field: &str) -> ErrorDetail {
    let message = format!("The run exists with another {field}, which it keeps; the new one was dropped.");
    warning(RUN_ATTRIBUTE_KEPT, field, message)
}

/// The run lacks tags of InitRun, or has other values of them.
#[must_use]
pub fn run_tags_kept() -> ErrorDetail {
    let message = "The run exists with other tags, which it keeps; the new ones were dropped. LogTags changes tags.";
    warning(RUN_ATTRIBUTE_KEPT, "tags", message)
}

/// The project has many running runs.
#[must_use]
pub fn active_runs_exceeded(limit: u64) -> ErrorDetail {
    let message = format!("The project has more than {limit} running runs. Finish those that have ended.");
    warning(ACTIVE_RUNS_EXCEEDED, "project_id", message)
}

/// At most `limit` warnings: the last one counts those that are left out.
#[must_use]
pub fn capped(mut warnings: Vec<ErrorDetail>, limit: usize) -> Vec<ErrorDetail> {
    if warnings.len() > limit {
        let left_out = warnings.len() - limit.saturating_sub(1);
        warnings.truncate(limit.saturating_sub(1));
        let message = format!("{left_out} more warnings are left out.");
        warnings.push(warning(WARNINGS_TRUNCATED, "", message));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_too_many_warnings_counts_the_rest() {
        let many = |n| (0..n).map(|place| step_negative(place, -1)).collect::<Vec<_>>();
        assert_eq!(capped(many(99), 100).len(), 99);
        assert_eq!(capped(many(100), 100), many(100));
        let capped = capped(many(101), 100);
        assert_eq!(capped.len(), 100);
        assert_eq!(capped[99].code, WARNINGS_TRUNCATED);
        assert_eq!(capped[99].message, "2 more warnings are left out.");
    }
}
