//! The deletion graph, switched off for good: `kindex release` takes its finalizer off, once nobody puts it back.

use std::fs;

use super::process::{Running, kubectl_is_there, wait_for};
use super::text_of;

const DELETION_FINALIZER: &str = "michelangelo.api/deletion";

const OBJECTS: &str = "
apiVersion: michelangelo.api/v2
kind: ModelFamily
metadata: {name: used, namespace: default}
spec: {}
---
apiVersion: michelangelo.api/v2
kind: ModelFamily
metadata: {name: free, namespace: default}
spec: {}
---
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: m, namespace: default}
spec: {algorithm: a, modelFamily: {name: used, namespace: default}}
";

fn finalizers(run: &Running, object: &str) -> String {
    run.kubectl(&["get", object, "-o", "jsonpath={.metadata.finalizers}"], "")
}

/// The exit code, what is printed, and the error.
fn release(run: &Running, flags: &[&str]) -> (Option<i32>, String, String) {
    let output = run.command(&[&["release"], flags].concat());
    (output.status.code(), text_of(&output.stdout), text_of(&output.stderr))
}

#[test]
fn its_finalizer_is_released_once_it_is_off() {
    if !kubectl_is_there() {
        return;
    }
    let mut run = Running::start(&[]);
    run.kubectl(&["apply", "-f", "-"], OBJECTS);
    for object in ["modelfamily/used", "modelfamily/free", "model/m"] {
        wait_for("the finalizers", || {
            let finalizers = finalizers(&run, object);
            finalizers.contains(DELETION_FINALIZER) && finalizers.contains("michelangelo/Ingester")
        });
    }
    wait_for("the reference", || {
        finalizers(&run, "modelfamily/used").contains("model.michelangelo.api/")
    });

    let config = run.data_dir().join("off.yaml");
    fs::write(&config, "ingester:\n  concurrentReconciles: 2\n").expect("writable");
    let config = config.to_str().expect("a path of letters");
    run.restart_with(&["--config", config]);
    // It ends as soon as the graph shows itself, however busy that is.
    let (code, _, stderr) = release(&run, &["--settle", "240"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("a deletion service is running"), "{stderr}");
    for object in ["modelfamily/used", "modelfamily/free", "model/m"] {
        wait_for("the finalizer", || {
            finalizers(&run, object).contains(DELETION_FINALIZER)
        });
    }

    run.restart_with(&["--config", config, "--deletion=false"]);
    let (code, stdout, stderr) = release(&run, &[]);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("on 1 that others use"), "{stderr}");
    assert!(finalizers(&run, "modelfamily/used").contains(DELETION_FINALIZER));
    for object in ["modelfamily/free", "model/m"] {
        assert_eq!(finalizers(&run, object), "", "{object}");
        run.kubectl(&["delete", object], "");
    }

    // What the graph had placed, an operator releases.
    let held = finalizers(&run, "modelfamily/used");
    let reference = held.split('"').find(|it| it.starts_with("model.michelangelo.api/"));
    let reason = ["--force", "--reason", "the graph is off"];
    let drop = [
        &["references", "drop", "modelfamily/used", reference.expect(&held)],
        &reason[..],
    ]
    .concat();
    let dropped = run.command(&drop);
    assert!(dropped.status.success(), "{}", text_of(&dropped.stderr));
    let (code, stdout, stderr) = release(&run, &[]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(finalizers(&run, "modelfamily/used"), "");
}
