//! What a program does not start on: a cluster or a database that stores a version which it does not declare.

use std::fs;

use kindex_harness::wait::WAIT_MAX;
use tokio::time::timeout;

use super::stage::{Exited, Stage, trials};

const UNKNOWN: &str = "kind Trial: the";

#[tokio::test(flavor = "multi_thread")]
async fn no_program_starts_where_an_undeclared_version_is_stored() {
    let Some(stage) = Stage::start().await else { return };
    let config = format!(
        "metadataStorage:\n  enableMetadataStorage: true\nsqlite:\n  path: {}\n",
        stage.path("rows.db").display()
    );
    fs::write(stage.path("kindex.yaml"), config).expect("written");
    let programs = [
        vec!["ingester", "--config", "kindex.yaml", "--health-addr", "127.0.0.1:0"],
        vec![
            "api",
            "--config",
            "kindex.yaml",
            "--health-addr",
            "127.0.0.1:0",
            "--listen",
            "127.0.0.1:0",
        ],
        vec!["up", "--config", "kindex.yaml", "--health-addr", "127.0.0.1:0"],
    ];
    let start_all = async |expected: &[&str]| {
        for program in &programs {
            let ended = timeout(WAIT_MAX, stage.command(program).output()).await;
            let output = ended.unwrap_or_else(|_| panic!("{program:?} goes on"));
            Exited::of(&output.expect("started")).expect(1, expected);
        }
    };
    stage.archive("v0", 1).await;
    let hint = "[kinds.Trial.versions.v0]";
    start_all(&[UNKNOWN, "database stores objects in v0", hint]).await;
    let shown = stage.run(&["versions", "--kind", "trials"]).await;
    shown.expect(0, &["safe to drop v0: no", "SQL has rows in it: 0 live, 1 archived"]);

    stage.sql("DELETE FROM trial").await;
    stage.define(&trials("v0", &["v0", "v1", "v2"])).await;
    start_all(&[UNKNOWN, "cluster stores objects in v0", hint]).await;
}
