//! Objects that finalizers of others keep in the cluster, whichever way they were told to go: nothing is wrong, the
//! commands name who holds them, and SQL has their last text.

use super::process::{Running, kubectl_is_there, wait_for};
use super::site::{Site, on_clusters};
use super::text_of;

const OTHER: &str = "example.com/other";

on_clusters!(sql_has_the_last_text_of_what_others_held);

fn model(name: &str) -> String {
    format!(
        r#"
apiVersion: michelangelo.api/v2
kind: Model
metadata: {{name: {name}, namespace: default, finalizers: [michelangelo/Ingester, {OTHER}]}}
spec: {{algorithm: first, owner: {{name: ada}}}}
"#
    )
}

/// Rows of all lives.
fn rows(run: &Running) -> String {
    let rows = [&["models", "-o", "json"][..], &["models", "--deleted", "-o", "json"]];
    rows.map(|args| run.get(args)).concat()
}

fn patch(run: &Running, name: &str, patch: &str) {
    run.kubectl(&["patch", "model", name, "--type=merge", "-p", patch], "");
}

fn sql_has_the_last_text_of_what_others_held(site: &Site) {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start_on(site, &[]);
    let names = ["plain", "marked", "archived"];
    for name in names {
        run.kubectl(&["apply", "-f", "-"], &model(name));
        wait_for("the row", || run.get(&["models"]).contains(name));
    }
    run.kubectl(&["delete", "model", "plain", "--wait=false"], "");
    run.kubectl(&["annotate", "model", "marked", "michelangelo/Deleting=true"], "");
    run.kubectl(&["annotate", "model", "archived", "michelangelo/Immutable=true"], "");
    for name in names {
        wait_for("the deletion", || {
            let time = ["get", "model", name, "-o", "jsonpath={.metadata.deletionTimestamp}"];
            !run.kubectl(&time, "").is_empty()
        });
        patch(&run, name, &format!(r#"{{"spec":{{"algorithm":"last-of-{name}"}}}}"#));
    }
    for name in names {
        wait_for("the text behind the deletion", || {
            rows(&run).contains(&format!("last-of-{name}"))
        });
    }
    for command in [
        &["status", "--wait", "--timeout", "240", "--kind", "models"][..],
        &["verify", "--kind", "models"],
    ] {
        let output = run.command(command);
        let text = text_of(&output.stdout);
        assert!(
            output.status.success(),
            "{command:?}: {text}{}",
            text_of(&output.stderr)
        );
        for name in names {
            assert!(
                text.contains(&format!("Model default/{name} is held by {OTHER}")),
                "{text}"
            );
        }
    }
    for name in names {
        patch(
            &run,
            name,
            &format!(r#"{{"spec":{{"algorithm":"very-last-of-{name}"}}}}"#),
        );
        patch(&run, name, r#"{"metadata":{"finalizers":["michelangelo/Ingester"]}}"#);
    }
    wait_for("the end of all", || run.kubectl(&["get", "models"], "").is_empty());
    for name in names {
        let last = format!("very-last-of-{name}");
        assert!(rows(&run).contains(&last), "{last}: {}", rows(&run));
    }
    let verified = run.command(&["verify", "--kind", "models"]);
    assert!(verified.status.success(), "{}", text_of(&verified.stdout));
    let archived = run.get(&["models"]);
    assert!(
        archived.contains("archived") && !archived.contains("plain"),
        "{archived}"
    );
}
