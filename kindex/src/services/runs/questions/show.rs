//! Answers of the runs service as tables. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kindex_commands::output::{age, table};
use serde_json::Value;

/// A page of runs.
pub(super) fn runs(answer: &Value, with_project: bool, now: Timestamp) -> String {
    let heads = ["project", "run", "name", "status", "points", "duration", "age"];
    let left_out = usize::from(!with_project);
    let rows = items(answer, "runs").map(|run| {
        let created = run["created_at"].as_str().and_then(|time| time.parse().ok());
        let row = [
            text(&run["project_id"]),
            text(&run["run_id"]),
            text(&run["name"]),
            text(&run["status"]),
            text(&run["metrics_count"]),
            duration(&run["duration_seconds"]),
            age(created, now),
        ];
        row.into_iter().skip(left_out).collect()
    });
    table(&heads[left_out..], rows)
}

/// A run with what belongs to it.
pub(super) fn run(answer: &Value) -> String {
    let facts = [
        ("run", "run_id"),
        ("project", "project_id"),
        ("name", "name"),
        ("description", "description"),
        ("status", "status"),
        ("user", "user_id"),
        ("parent", "parent_run_id"),
        ("created", "created_at"),
        ("finished", "finished_at"),
        ("duration", "duration_seconds"),
        ("points", "metrics_count"),
        ("artifacts", "artifact_count"),
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (head, field) in facts {
        let value = match field {
            "duration_seconds" => duration(&answer[field]),
            _ => text(&answer[field]),
        };
        if !value.is_empty() {
            rows.push(vec![head.to_owned(), value]);
        }
    }
    for (head, field) in [("tag", "tags"), ("param", "params"), ("summary", "summary")] {
        for (name, value) in answer[field].as_object().into_iter().flatten() {
            rows.push(vec![format!("{head} {name}"), text(value)]);
        }
    }
    for metric in items(answer, "metrics_summary") {
        let at = format!("{} at step {}", text(&metric["last_value"]), text(&metric["last_step"]));
        rows.push(vec![format!("metric {}", text(&metric["name"])), at]);
    }
    table(&["field", "value"], rows)
}

/// Curves: a line for each point, or for each bucket where there are more points than lines.
pub(super) fn curves(answer: &Value) -> String {
    let is_thinned = items(answer, "series").any(|series| series["downsampled"] == true);
    let heads: &[&str] = match is_thinned {
        true => &["metric", "step", "mean", "min", "max", "points"],
        false => &["metric", "step", "value"],
    };
    let fields: &[&str] = match is_thinned {
        true => &["step", "mean", "min", "max", "count"],
        false => &["step", "mean"],
    };
    let rows = items(answer, "series").flat_map(|series| {
        let name = text(&series["name"]);
        items(series, "points").map(move |point| {
            let mut row = vec![name.clone()];
            row.extend(fields.iter().map(|field| text(&point[field])));
            row
        })
    });
    table(heads, rows)
}

/// Of the metrics that were asked for, those without points in the answer.
pub(super) fn missing(names: &[String], answer: &Value) -> Vec<String> {
    let found: BTreeSet<String> = items(answer, "series").map(|series| text(&series["name"])).collect();
    names.iter().filter(|name| !found.contains(*name)).cloned().collect()
}

/// The metrics that the run has.
pub(super) fn available(answer: &Value) -> String {
    let names: Vec<String> = items(answer, "available_metrics").map(text).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

/// What was counted, and what does not agree.
pub(super) fn report(answer: &Value) -> String {
    let counted = ["runs", "batches", "chunks", "points"].map(|name| vec![name.to_owned(), text(&answer[name])]);
    let findings = items(answer, "findings").map(|finding| vec!["wrong".to_owned(), text(finding)]);
    table(&["checked", "result"], counted.into_iter().chain(findings))
}

fn items<'a>(answer: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    answer[field].as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Seconds as people read them.
fn duration(seconds: &Value) -> String {
    let Some(seconds) = seconds.as_f64() else {
        return String::new();
    };
    match seconds as u64 {
        0..120 => format!("{seconds:.1}s"),
        whole @ 120..7_200 => format!("{}m{}s", whole / 60, whole % 60),
        whole => format!("{}h{}m", whole / 3_600, whole % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runs_are_lines() {
        let run = json!({"project_id": "vision", "run_id": "a", "name": "resnet", "status": "failed", "metrics_count": 7,
            "duration_seconds": 125.5, "created_at": "2026-11-24T08:00:00Z"});
        let now = "2026-11-24T08:05:00Z".parse().expect("a time");
        let answer = json!({"runs": [run]});
        assert_eq!(
            runs(&answer, true, now),
            "PROJECT   RUN   NAME     STATUS   POINTS   DURATION   AGE\nvision    a     resnet   failed   7        2m5s       \
             5m\n"
        );
        assert_eq!(
            runs(&answer, false, now),
            "RUN   NAME     STATUS   POINTS   DURATION   AGE\na     resnet   failed   7        2m5s       5m\n"
        );
    }

    #[test]
    fn points_are_lines_and_buckets_show_their_range() {
        let point = |step: i64, value: Value| json!({"step": step, "mean": value, "min": 1, "max": 3, "count": 2});
        let series = |downsampled: bool| {
            let points = [point(1, json!(0.5)), point(2, json!("NaN"))];
            json!({"series": [{"name": "loss", "points": points, "downsampled": downsampled}]})
        };
        assert_eq!(
            curves(&series(false)),
            "METRIC   STEP   VALUE\nloss     1      0.5\nloss     2      NaN\n"
        );
        assert_eq!(
            curves(&series(true)),
            "METRIC   STEP   MEAN   MIN   MAX   POINTS\nloss     1      0.5    1     3     2\n\
             loss     2      NaN    1     3     2\n"
        );
    }

    #[test]
    fn metrics_without_points_are_named() {
        let answer = json!({"series": [{"name": "loss", "points": []}], "available_metrics": ["acc", "loss"]});
        assert_eq!(missing(&["loss".to_owned(), "x".to_owned()], &answer), ["x"]);
        assert_eq!(available(&answer), "acc, loss");
    }

    #[test]
    fn a_run_is_shown_with_tags_parameters_and_last_values() {
        let shown = run(
            &json!({"run_id": "a", "status": "running", "tags": {"team": "red"}, "params": {"lr": "0.1"},
            "parent_run_id": null, "metrics_summary": [{"name": "loss", "last_value": 0.5, "last_step": 9}]}),
        );
        assert_eq!(
            shown,
            "FIELD         VALUE\nrun           a\nstatus        running\ntag team      red\nparam lr      0.1\n\
             metric loss   0.5 at step 9\n"
        );
    }
}
