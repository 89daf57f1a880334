//! The real kubectl with `--server` on the API server, from a first `create` to an archived object's end.

use kindex_harness::kubectl::{command, installed, run_async};
use kindex_harness::require::require;
use serde_json::json;

use super::stage::{FINAL, Stage, manifest};

pub(super) fn kubectl_is_there() -> bool {
    require("kubectl", installed())
}

/// What kubectl says to a line of words, and whether it is content.
pub(super) async fn kubectl(stage: &Stage, line: &str, input: &str) -> (bool, String) {
    let server = format!("http://{}", stage.address);
    kubectl_at(stage, &["--server", &server], line, input).await
}

/// The same with flags that say which server is asked, and by whom.
pub(super) async fn kubectl_at(stage: &Stage, flags: &[&str], line: &str, input: &str) -> (bool, String) {
    let mut command = command(stage.ground.directory.path());
    command
        .args(flags)
        .args(line.split(' '))
        .env("KUBE_EDITOR", "sed -i -e s/algorithm:.*/algorithm:\\ edited/");
    let output = run_async(command, input).await;
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_takes_archived_objects_for_live_ones() {
    if !kubectl_is_there() {
        return;
    }
    let stage = Stage::on_sqlite().await;
    let model = manifest(
        json!({"name": "a", "namespace": "default"}),
        json!({"algorithm": "one"}),
    )
    .to_string();
    let live = [
        ("create -f -", model.as_str(), "model.michelangelo.api/a created"),
        ("get models -A", "", "one"),
        ("edit model a", "", "edited"),
        ("get model a -o jsonpath={.spec.algorithm}", "", "edited"),
        ("apply -f -", &model, "configured"),
        ("get model a -o jsonpath={.spec.algorithm}", "", "one"),
    ];
    let evict = format!("annotate model a {FINAL}=true");
    let archived = [
        ("get model a", "", "one"),
        ("get models -A", "", "one"),
        ("get model a -o yaml", "", "algorithm: one"),
        ("label model a team=x", "", "labeled"),
        ("get models -l team=x -o name", "", "model.michelangelo.api/a"),
        ("edit model a", "", "edited"),
        ("get model a -o jsonpath={.spec.algorithm}", "", "edited"),
        ("delete model a --timeout=240s", "", "deleted"),
    ];
    for (line, input, expected) in live {
        let (content, output) = kubectl(&stage, line, input).await;
        assert!(content && output.contains(expected), "{line}: {output}");
    }
    let (content, output) = kubectl(&stage, &evict, "").await;
    assert!(content, "{output}");
    stage.wait_until_archived("a").await;
    let (content, output) = kubectl(&stage, "create -f -", &model).await;
    assert!(!content && output.contains("AlreadyExists"), "{output}");
    for (line, input, expected) in archived {
        let (content, output) = kubectl(&stage, line, input).await;
        assert!(content && output.contains(expected), "{line}: {output}");
    }
    let (content, output) = kubectl(&stage, "get model a", "").await;
    assert!(!content && output.contains("NotFound"), "{output}");
    let (content, output) = kubectl(&stage, "create -f -", &model).await;
    assert!(content, "{output}");
    let (content, output) = kubectl(&stage, "delete model a --timeout=240s", "").await;
    assert!(content && output.contains("deleted"), "{output}");
    stage.wait_until_deleted("a").await;
    stage.end().await;
}
