//! The house rules that a machine can check. Each test is one rule, named for it,
//! and lists every place that breaks it. Reads the checked-out files; builds nothing.

mod declarations;
mod files;
mod tokens;

mod free_functions;
mod globs;
mod license;
mod manifests;
mod methods;
mod panics;

mod rust;

mod sources;
mod sql;
mod tree;

mod terms;

mod agreement;
mod commands;
mod commits;
mod dependencies;
mod dialects;
mod empty;
mod engines;
mod kubernetes;
mod modules;
mod pages;
mod paths;
mod reached;
mod required;
mod schemas;
mod servers;
mod services;
mod snapshots;
mod words;

/// Fails with every finding, one a line, as an editor's error list wants them.
fn expect_none(findings: Vec<String>) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}
