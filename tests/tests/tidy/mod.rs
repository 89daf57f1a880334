//! The house rules that a machine can check. Each test is one rule, named for it,
//! and lists every place that breaks it. Reads the checked-out files; builds nothing.

mod agreement;
mod commands;
mod commits;
mod declarations;
mod dependencies;
mod dialects;
mod empty;
mod files;
mod free_functions;
mod globs;
mod kubernetes;
mod license;
mod manifests;
mod methods;
mod modules;
mod pages;
mod paths;
mod reached;
mod rust;
mod schemas;
mod services;
mod snapshots;
mod sources;
mod sql;
mod terms;
mod tokens;
mod tree;
mod words;

/// Fails with every finding, one a line, as an editor's error list wants them.
fn expect_none(findings: Vec<String>) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}
