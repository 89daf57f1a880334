//! The real kubectl, run against a cluster, and the transcript of what it printed.

use std::process::Command;

use kindex_harness::kubectl;
use kindex_harness::require::require;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::cluster::TestCluster;

/// A transcript of kubectl commands, with everything masked that differs from run to run.
pub(super) struct Transcript<'a> {
    cluster: &'a TestCluster,
    text: String,
}

/// Whether kubectl is there; where it must be, its absence is a failure.
pub(super) fn kubectl_is_there() -> bool {
    require("kubectl", kubectl::installed())
}

fn command(cluster: &TestCluster, arguments: &[&str]) -> Command {
    let mut command = kubectl::command(cluster.path("home"));
    command
        .args(arguments)
        .env("KUBECONFIG", cluster.path("kubeconfig"))
        .env("KUBE_EDITOR", "sed -i -e s/size:.*/size:\\ 7/");
    command
}

impl<'a> Transcript<'a> {
    /// An empty transcript.
    pub(super) fn of(cluster: &'a TestCluster) -> Self {
        Self {
            cluster,
            text: String::new(),
        }
    }

    /// Runs a command.
    pub(super) async fn run(&mut self, line: &str) -> &mut Self {
        self.run_with(line, "").await
    }

    /// Runs a command with a manifest on its standard input. Words are separated by spaces; `'…'` holds one together.
    pub(super) async fn run_with(&mut self, line: &str, input: &str) -> &mut Self {
        let words = split(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = kubectl::run_async(command(self.cluster, &words), input).await;
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let printed: String = [stdout, stderr].concat();
        self.text
            .push_str(&format!("$ kubectl {line}\n{}\n", printed.trim_end()));
        if !output.status.success() {
            self.text
                .push_str(&format!("(exit {})\n", output.status.code().unwrap()));
        }
        self
    }

    /// The transcript, masked.
    pub(super) fn text(&self) -> String {
        mask(&self.text, &self.cluster.server.address.to_string())
    }
}

/// A kubectl that goes on, such as a watch, read line by line.
pub(super) struct Running {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts a command.
    pub(super) fn start(cluster: &TestCluster, line: &str) -> Self {
        let words = split(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut child = kubectl::start(command(cluster, &words));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { _child: child, lines }
    }

    /// The next line, its columns separated by one space.
    pub(super) async fn line(&mut self) -> String {
        let line = self.lines.next_line().await.unwrap().expect("kubectl goes on");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn split(line: &str) -> Vec<String> {
    line.split('\'')
        .enumerate()
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

/// Replaces what no two runs share: uids, times, versions, addresses, ages.
fn mask(text: &str, address: &str) -> String {
    let mut lines = Vec::new();
    for line in text.replace(address, "ADDRESS").lines() {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        let masked = match line.trim_start().split_once(": ") {
            Some((key @ ("uid" | "UID"), _)) => format!("{indent}{key}: UID"),
            Some((key @ ("resourceVersion" | "Resource Version"), _)) => {
                format!("{indent}{key}: VERSION")
            }
            Some((key @ ("creationTimestamp" | "Creation Timestamp" | "time" | "Time" | "deletionTimestamp"), _)) => {
                format!("{indent}{key}: TIME")
            }
            _ => mask_ages(line),
        };
        lines.push(masked.trim_end().to_owned());
    }
    lines.join("\n")
}

/// Ages stand at the end of a table's lines: `3s`, on a slow machine `2m5s`.
fn mask_ages(line: &str) -> String {
    let Some((head, last)) = line.rsplit_once(' ') else {
        return line.to_owned();
    };
    let is_age = last.starts_with(|c: char| c.is_ascii_digit())
        && last.ends_with(['s', 'm'])
        && last.chars().all(|c| c.is_ascii_digit() || matches!(c, 's' | 'm'));
    if is_age { format!("{head} AGE") } else { line.to_owned() }
}
