//! `/metrics` of a running kindex: the reference page says exactly what it shows, and
//! dashboard and alerts use nothing else. promtool is the judge of all formats.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use kindex_harness::require::{program, require};
use kindex_harness::scrape::{self, Scrape};
use regex::Regex;

use super::process::{Running, wait_for};

const PAGE: &str = include_str!("../../../docs/src/reference/metrics.md");

fn deploy(file: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    workspace
        .expect("kindex/ lies in the workspace")
        .join("deploy")
        .join(file)
}

/// What a kindex shows that has stored the samples; one run for all tests.
static EXPOSITION: LazyLock<String> = LazyLock::new(|| {
    // Nobody is there, and the metrics are.
    let run = Running::start(&["--samples", "--nats", "nats://127.0.0.1:1"]);
    let api = run.api().expect("it serves");
    let (code, _) = scrape::get(api, "/apis/michelangelo.api/v2/models").expect("the API server answers");
    assert_eq!(code, 200);
    let (code, _) = scrape::get(run.runs(), "/health").expect("the runs service answers");
    assert_eq!(code, 200);
    wait_for("all samples, and what shows its metrics once it is at work", || {
        let scrape = Scrape::parse(&run.request("/metrics").1);
        let later = ["kindex_deletion_steps_total", "kindex_nats_lag_seconds"];
        scrape.sum("kindex_ingester_lag_seconds_count") >= 13.0
            && later.iter().all(|name| scrape.families.contains_key(*name))
    });
    let (status, text) = run.request("/metrics");
    assert_eq!(status, 200);
    text
});

/// Runs promtool; what it says, once it is content.
fn promtool(args: &[&str], input: &str) -> Option<String> {
    let found = program("promtool");
    if !require("promtool", found.is_some()) {
        return None;
    }
    let mut child = Command::new(found?)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut stdin = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, input.as_bytes()).expect("promtool reads");
    drop(stdin);
    let output = child.wait_with_output().expect("promtool ends");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "promtool {args:?}: {text}");
    Some(text.into_owned())
}

#[test]
fn the_exposition_is_what_prometheus_expects() {
    if let Some(findings) = promtool(&["check", "metrics"], &EXPOSITION) {
        assert_eq!(findings, "", "promtool has nothing to add");
    }
}

#[test]
fn the_reference_page_lists_every_metric_as_it_is() {
    let mut expected = String::new();
    for (name, family) in Scrape::parse(&EXPOSITION).families {
        let labels: Vec<&str> = family.labels.iter().map(String::as_str).collect();
        let (labels, help) = (labels.join(", "), family.help);
        writeln!(expected, "| `{name}` | {} | {labels} | {help} |", family.metric_type).expect("a text grows");
    }
    let listed: String = PAGE
        .lines()
        .filter(|line| line.starts_with("| `kindex_") || line.starts_with("| `process_"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(
        listed == expected,
        "docs/src/reference/metrics.md should list\n{expected}"
    );
}

/// Every metric that a text of PromQL names.
fn named(text: &str) -> BTreeSet<String> {
    let names = Regex::new(r"\b(?:kindex|process)_[a-z0-9_]+").expect("a valid pattern");
    names.find_iter(text).map(|name| name.as_str().to_owned()).collect()
}

fn shown() -> BTreeSet<String> {
    Scrape::parse(&EXPOSITION)
        .samples
        .into_iter()
        .map(|sample| sample.name)
        .collect()
}

#[test]
fn every_alert_is_about_a_metric_that_exists() {
    let rules = std::fs::read_to_string(deploy("prometheus/alerts.yaml")).expect("the rules");
    let expressions = Regex::new(r"(?ms)^ *expr:(.*?)^ *(?:for|labels):").expect("a valid pattern");
    let text: String = expressions
        .captures_iter(&rules)
        .map(|found| found[1].to_owned())
        .collect();
    let named = named(&text);
    assert!(named.len() >= 10, "the expressions are found: {named:?}");
    assert_eq!(named.difference(&shown()).next(), None);
}

#[test]
fn every_alert_fires_when_it_should_and_only_then() {
    let rules = deploy("prometheus/alerts.yaml").display().to_string();
    promtool(&["check", "rules", &rules], "");
    let tests = deploy("prometheus/alerts.test.yaml").display().to_string();
    promtool(&["test", "rules", &tests], "");
    let text = std::fs::read_to_string(tests).expect("the tests");
    for line in std::fs::read_to_string(rules).expect("the rules").lines() {
        if let Some(alert) = line.trim_start().strip_prefix("- alert: ") {
            let fires = format!("alertname: {alert}\n        exp_alerts:");
            assert!(text.contains(&fires), "no test makes {alert} fire");
        }
    }
}

/// Every expression of the dashboard, its variables filled in.
fn dashboard_expressions() -> Vec<String> {
    let text = std::fs::read_to_string(deploy("grafana/kindex.json")).expect("the dashboard");
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions = targets.map(|target| target["expr"].as_str().expect("an expression"));
    let filled = expressions.map(|expression| {
        expression
            .replace("$__rate_interval", "5m")
            .replace("$__range", "1h")
            .replace("$instance", ".*")
            .replace("$kind", ".*")
    });
    filled.collect()
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist_in_valid_promql() {
    let expressions = dashboard_expressions();
    assert!(expressions.len() > 20, "{expressions:?}");
    assert_eq!(named(&expressions.join("\n")).difference(&shown()).next(), None);

    let rules = expressions.iter().enumerate().map(|(number, expression)| {
        let quoted = serde_json::to_string(expression).expect("text");
        format!("  - {{ record: 'dashboard:{number}', expr: {quoted} }}\n")
    });
    let rules: String = rules.collect();
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), format!("groups:\n- name: dashboard\n  rules:\n{rules}")).expect("writable");
    promtool(&["check", "rules", &file.path().display().to_string()], "");
}

/// A panel for everything that can be watched over time: what no panel shows is forgotten.
#[test]
fn the_dashboard_shows_every_metric() {
    let expressions = dashboard_expressions().join("\n");
    let families = Scrape::parse(&EXPOSITION).families;
    let forgotten = families
        .keys()
        .find(|name| name.starts_with("kindex_") && !expressions.contains(name.as_str()));
    assert_eq!(forgotten, None);
}
