//! The chart as helm renders it, with the program that `tests/helm/build` makes. Knows nothing of what is in it.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::tools::{tools, workspace};

/// The release of the tests, and its namespace.
pub const RELEASE: &str = "kindex";

/// Whether `tests/helm/build` was run.
pub fn installed() -> bool {
    program().is_file()
}

/// The chart of the checkout.
pub fn chart() -> PathBuf {
    workspace().join("deploy/helm/kindex")
}

/// Runs helm, without anything that its user may have set.
///
/// # Panics
/// When it cannot be started.
pub fn helm(args: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(args).env_clear().env("HOME", "/nonexistent");
    command.output().expect("helm starts")
}

/// The manifests of a release with these values, in helm's order.
///
/// # Errors
/// What helm says where it renders nothing.
///
/// # Panics
/// When what it renders is not YAML.
pub fn template(values: &[&str]) -> Result<Vec<Value>, String> {
    let chart = chart();
    let mut args = vec!["template", RELEASE, chart.to_str().expect("a path of letters")];
    args.extend(["--namespace", RELEASE]);
    args.extend(values);
    let output = helm(&args);
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8(output.stdout).expect("manifests are text");
    let documents = text
        .split("\n---\n")
        .map(|document| document.trim_start_matches("---\n"));
    let is_some = |document: &&str| document.lines().any(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |document| serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{error}:\n{document}"));
    Ok(documents.filter(is_some).map(read).collect())
}

fn program() -> PathBuf {
    tools().join("helm")
}
