//! What is checked of a single field, and how a field that does not fit is refused.

use crate::domain::{BatchId, ProjectName, RunId};
use crate::limits::{self, Limit, NameFault, NameRules, Unit};
use crate::refusal::{Code, Refusal};
use crate::wire::v1;

/// The largest number that every client can say exactly.
const SEQUENCE_MAX: i64 = 1 << 53;

/// A field that has to be there.
pub(super) fn required(field: &str, of: &str) -> Refusal {
    let message = format!("{field} is missing: the request needs a {of}");
    Refusal::new(Code::InvalidArgument, "REQUIRED", message).at(field)
}

/// A name by these rules.
fn name(field: &str, name: &str, name_rules: NameRules, limit: Limit) -> Result<(), Refusal> {
    name_rules.check(name, limit.max).map_err(|fault| match fault {
        NameFault::Empty => required(field, limit.of),
        fault => {
            let message = format!("{field}: the {} {fault}", limit.of);
            let reason = match fault {
                NameFault::TooLong(_) => "TOO_LONG",
                _ => "INVALID_NAME",
            };
            Refusal::new(Code::InvalidArgument, reason, message).at(field)
        }
    })
}

/// A text that is no longer than its limit.
pub(super) fn text(field: &str, text: &str, limit: Limit) -> Result<(), Refusal> {
    if limit.holds(text) {
        return Ok(());
    }
    let unit = match limit.unit {
        Unit::Characters => "characters",
        Unit::Bytes | Unit::Items => "bytes",
        Unit::Seconds => "seconds",
    };
    let message = format!(
        "{field}: the {} has {} {unit}, at most {} are stored",
        limit.of,
        limit.size(text),
        limit.max
    );
    Err(Refusal::new(Code::InvalidArgument, "TOO_LONG", message).at(field))
}

/// As many things as a limit allows.
///
/// # Errors
/// More.
pub fn within(field: &str, count: usize, limit: Limit) -> Result<(), Refusal> {
    if count <= limit.max {
        return Ok(());
    }
    let message = format!(
        "{field}: {count} {}, at most {} are allowed; send several requests",
        limit.of, limit.max
    );
    Err(Refusal::new(Code::InvalidArgument, "TOO_MANY", message).at(field))
}

/// The project of a request.
///
/// # Errors
/// None, and one whose name does not fit.
pub fn project(project: Option<&v1::ProjectId>) -> Result<ProjectName, Refusal> {
    let value = project.map_or("", |project| project.value.as_str());
    name("project_id", value, NameRules::Project, limits::PROJECT_NAME)?;
    Ok(ProjectName::new(value))
}

/// The project of a request that may be about all of them; an empty name is none.
///
/// # Errors
/// One whose name does not fit.
pub(crate) fn optional_project(project: Option<&v1::ProjectId>) -> Result<Option<ProjectName>, Refusal> {
    let named = project.filter(|project| !project.value.is_empty());
    named.map(|named| self::project(Some(named))).transpose()
}

/// The run of a request.
///
/// # Errors
/// None, and one whose id does not fit.
pub fn run_id(run: Option<&v1::RunId>) -> Result<RunId, Refusal> {
    bare_run_id("run_id", run.map_or("", |run| run.value.as_str()))
}

/// A run in this field.
pub(super) fn bare_run_id(field: &str, value: &str) -> Result<RunId, Refusal> {
    name(field, value, NameRules::Run, limits::RUN_ID)?;
    Ok(RunId::new(value))
}

/// The id of a batch.
pub(super) fn batch_id(value: &str) -> Result<BatchId, Refusal> {
    name("batch_id", value, NameRules::Any, limits::BATCH_ID)?;
    Ok(BatchId::new(value))
}

/// The name of an artifact.
///
/// # Errors
/// None, and one that does not fit.
pub(crate) fn artifact_name(field: &str, value: &str) -> Result<(), Refusal> {
    name(field, value, NameRules::ArtifactName, limits::ARTIFACT_NAME)
}

/// The place of a batch among those of its run.
pub(super) fn sequence(sequence: Option<i64>) -> Result<Option<i64>, Refusal> {
    match sequence {
        Some(number) if !(1..=SEQUENCE_MAX).contains(&number) => {
            let message = format!("sequence is {number}: the batches of a run count from 1, up to {SEQUENCE_MAX}");
            Err(Refusal::new(Code::InvalidArgument, "OUT_OF_RANGE", message).at("sequence"))
        }
        sequence => Ok(sequence),
    }
}
