//! The ingester's configuration file says where rows are, to every command that asks for them.

use std::process::Command;

use kindex_tests::databases::sqlite;

use super::query::fill;
use super::text_of;

#[test]
fn a_configuration_file_says_where_rows_are_for_every_question() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fill(&sqlite::file(directory.path().join("runs.db")));
    let config = directory.path().join("kindex.yaml");
    let text = "metadataStorage: {enableMetadataStorage: true}\nsqlite: {path: runs.db}\n";
    std::fs::write(&config, text).expect("writable");
    let config = config.to_str().expect("a path of letters");
    for (words, code, shown) in [
        (&["get", "models"][..], 0, "xgboost"),
        (&["query", "failed-runs", "-p", "namespace=prod"], 0, "r09"),
        (
            &["history", "model/fraud", "-n", "prod"],
            0,
            "the first version that is kept",
        ),
        (&["diff", "model/fraud", "-n", "prod"], 1, "no version before 2 is kept"),
    ] {
        let kindex = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_kindex"));
            command.args(words).current_dir(directory.path());
            command
        };
        for output in [
            kindex().args(["--config", config]).output(),
            kindex().env("KINDEX_CONFIG", config).output(),
        ] {
            let output = output.expect("kindex runs");
            let text = text_of(&output.stdout) + &text_of(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
            assert!(text.contains(shown), "{words:?}: {text}");
        }
    }
}
