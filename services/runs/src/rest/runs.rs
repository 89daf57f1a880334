//! A run and its summary as JSON.

use serde_json::{Map, Value, json};

use super::values::{Double, rfc3339};
use crate::domain::{self, Status};
use crate::wire::v1::{Parameter, Run, Tag};

/// As existing clients know a run, and with all that the message has; and when it changed last.
pub(super) fn run(run: &Run, changed_at: Option<i64>) -> Value {
    let status = Status::of_number(run.status.into());
    json!({
        "run_id": run.run_id.as_ref().map_or("", |run| run.value.as_str()),
        "project_id": run.project_id.as_ref().map_or("", |project| project.value.as_str()),
        "name": run.name,
        "description": run.description,
        "status": status.map_or("unspecified", Status::word),
        "metrics_count": run.metric_count,
        "params_count": run.params.len(),
        "artifact_count": run.artifact_count,
        "tags": tags(&run.tags),
        "params": params(&run.params),
        "summary": summary(&run.summary),
        "parent_run_id": run.parent_run_id,
        "user_id": run.user_id,
        "created_at": rfc3339(run.created_at.as_ref()),
        "started_at": rfc3339(run.started_at.as_ref()),
        "finished_at": rfc3339(run.finished_at.as_ref()),
        "updated_at": changed_at.map(|nanos| domain::timestamp(nanos).to_string()),
        "duration_seconds": run.duration_seconds,
        "system_info": run.system_info.as_ref().map(|info| super::message::to_json("SystemInfo", info)),
        "git_info": run.git_info.as_ref().map(|info| super::message::to_json("GitInfo", info)),
    })
}

fn tags(tags: &[Tag]) -> Map<String, Value> {
    tags.iter()
        .map(|tag| (tag.key.clone(), Value::from(tag.value.as_str())))
        .collect()
}

/// By name.
pub(super) fn params(params: &[Parameter]) -> Map<String, Value> {
    params
        .iter()
        .map(|param| (param.name.clone(), Value::from(param.value.as_str())))
        .collect()
}

/// What can be read as a number is one.
fn summary(summary: &[Parameter]) -> Map<String, Value> {
    let value = |text: &str| {
        let number: Option<Double> = serde_json::from_value(Value::from(text)).ok();
        number.map_or_else(|| Value::from(text), |number| json!(number))
    };
    summary
        .iter()
        .map(|entry| (entry.name.clone(), value(&entry.value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_shows_numbers_as_numbers() {
        let entry = |name: &str, value: &str| Parameter {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let shown = summary(&[
            entry("loss", "0.25"),
            entry("note", "best"),
            entry("bad", "NaN"),
            entry("empty", ""),
        ]);
        assert_eq!(
            Value::from(shown),
            json!({"loss": 0.25, "note": "best", "bad": "NaN", "empty": ""})
        );
    }
}
