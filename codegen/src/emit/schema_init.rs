//! What runs the schema file on a server: the script, the Kubernetes Job that carries both, and the chart's copies.
//! Which tables there are is in the schema file alone.

use askama::Template;

use crate::artifact::{Artifacts, HEADER, RelativePath};

#[derive(Template)]
#[template(path = "ingester_schema_job.yaml", escape = "none")]
struct Job<'a> {
    header: &'static str,
    script: &'a str,
    sql: &'a str,
}

/// The script for people and for the chart, with the mark before it, and the Job with the script and the schema in it.
pub(super) fn emit(script: &str, sql: &str) -> Artifacts {
    let script = format!("#!/usr/bin/env bash\n# {HEADER}\n#\n{script}");
    let job = Job {
        header: HEADER,
        script: &indented(&script),
        sql: &indented(sql),
    };
    let job = job.render().expect("the template writes into a string") + "\n";
    let files = [
        ("deploy/schema/ingester_schema_job.yaml", job),
        ("deploy/schema/init_db.sh", script.clone()),
        ("deploy/helm/kindex/files/schema/init_db.sh", script),
    ];
    files
        .into_iter()
        .map(|(path, text)| (RelativePath::new(path), text))
        .collect()
}

/// As the block of a YAML value; without the last line's end.
fn indented(text: &str) -> String {
    let line = |line: &str| match line {
        "" => String::new(),
        line => format!("    {line}"),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
