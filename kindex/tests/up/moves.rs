//! `kindex move`, and what the API server refuses of plain updates that do the same.

use std::process::Output;
use std::thread;

use kindex_harness::kubectl;
use serde_json::{Value, json};

use super::process::{Running, kubectl_is_there, wait_for};

const OBJECTS: &str = "
apiVersion: michelangelo.api/v2
kind: ModelFamily
metadata: {name: one, namespace: default}
spec: {name: one}
---
apiVersion: michelangelo.api/v2
kind: ModelFamily
metadata: {name: two, namespace: default}
spec: {name: two}
---
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: m, namespace: default}
spec: {algorithm: a, modelFamily: {name: one, namespace: default}}
";
/// A finalizer of somebody else.
const CLEANUP: &str = "example.com/cleanup";

/// The manifest of another family.
fn family(name: &str) -> String {
    let one = OBJECTS.split("---").next().expect("a manifest");
    one.replace("one", name)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn notes(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn start() -> Option<Running> {
    if !kubectl_is_there() {
        return None;
    }
    let run = Running::start(&[]);
    run.kubectl(&["apply", "-f", "-"], OBJECTS);
    wait_for("the reference", || has_reference(&run, "one"));
    Some(run)
}

fn finalizers(run: &Running, family: &str) -> String {
    let path = "jsonpath={.metadata.finalizers}";
    run.kubectl(&["get", "modelfamily", family, "--ignore-not-found", "-o", path], "")
}

fn has_reference(run: &Running, family: &str) -> bool {
    let path = "jsonpath={.metadata.uid}";
    let uid = run.kubectl(&["get", "model", "m", "--ignore-not-found", "-o", path], "");
    !uid.is_empty() && finalizers(run, family).contains(&format!("model.michelangelo.api/{uid}"))
}

fn named(run: &Running) -> String {
    let path = "jsonpath={.spec.modelFamily.name}";
    run.kubectl(&["get", "model", "m", "-o", path], "")
}

fn moved(run: &Running, to: &str, more: &[&str]) -> Output {
    let to = format!("modelfamily/{to}");
    run.command(&[&["move", "model/m", "--to", &to][..], more].concat())
}

#[test]
fn a_move_takes_the_reference_along() {
    let Some(run) = start() else { return };
    let tried = moved(&run, "two", &["--dry-run"]);
    assert_eq!(
        text(&tried),
        "model/default/m: spec.modelFamily would name modelfamily/default/two instead of modelfamily/default/one\n",
        "{}",
        notes(&tried)
    );
    let tried = moved(&run, "two", &["--dry-run", "-o", "json"]);
    let answer: Value = serde_json::from_str(&text(&tried)).expect("JSON");
    assert_eq!(answer["dryRun"], true, "{answer}");
    assert!(
        named(&run) == "one" && !has_reference(&run, "two"),
        "nothing was written"
    );
    let done = moved(&run, "two", &["-o", "json"]);
    let answer: Value = serde_json::from_str(&text(&done)).expect("JSON");
    assert_eq!(
        (&answer["reference"], &answer["dryRun"]),
        (&"model_family".into(), &false.into()),
        "{answer}"
    );
    assert!(named(&run) == "two" && has_reference(&run, "two"), "{answer}");
    wait_for("the old family to be free", || !has_reference(&run, "one"));
    assert!(text(&moved(&run, "two", &[])).contains("names modelfamily/default/two already"));

    // The old one goes, and does not take the model along.
    run.kubectl(&["delete", "modelfamily", "one"], "");
    let gone = moved(&run, "one", &[]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(notes(&gone).contains("not found"), "{}", notes(&gone));
    assert!(named(&run) == "two" && has_reference(&run, "two"));
}

#[test]
fn what_is_not_clear_or_not_possible_is_refused() {
    let Some(run) = start() else { return };
    for (args, code, said) in [
        (
            &["model/m", "--to", "pipeline/a"][..],
            2,
            "no reference of Model names objects of Pipeline",
        ),
        (&["model/m", "--to", "modelfamily"], 2, "which ModelFamily?"),
        (
            &["model/m", "--to", "modelfamily/two", "--reference", "family"],
            2,
            "Model has no reference family",
        ),
        (&["model/x", "--to", "modelfamily/two"], 1, "not found"),
        (
            &["model/m", "--to", "modelfamily/two", "-n", ""],
            2,
            "--namespace: the namespace is empty",
        ),
        (&["trigger/x", "--to", "pipeline/two"], 2, "unknown kind"),
    ] {
        let refused = run.command(&[&["move"], args].concat());
        assert_eq!(refused.status.code(), Some(code), "{args:?}: {}", notes(&refused));
        assert!(notes(&refused).contains(said), "{args:?}: {}", notes(&refused));
    }
}

/// By the versions of both: without the graph, nobody but the move writes them.
#[test]
fn the_new_family_is_held_before_the_field_names_it_and_the_old_one_until_after_that() {
    let Some(mut run) = start() else { return };
    wait_for("all finalizers of the new family", || {
        let finalizers = finalizers(&run, "two");
        ["michelangelo/Ingester", "michelangelo.api/deletion"]
            .iter()
            .all(|expected| finalizers.contains(expected))
    });
    run.restart_with(&["--deletion=false"]);
    let done = moved(&run, "two", &[]);
    assert!(done.status.success(), "{}", notes(&done));
    assert!(named(&run) == "two" && has_reference(&run, "two"));
    let (held, written) = (version(&run, "modelfamily/two"), version(&run, "model/m"));
    assert!(held < written, "held in {held}, named in {written}");
    assert!(
        has_reference(&run, "one"),
        "a move of a live model releases nothing itself"
    );

    run.restart_with(&[]);
    wait_for("the old family to be free", || !has_reference(&run, "one"));
    assert!(has_reference(&run, "two"));
}

/// Versions of a cluster count the writes of all its objects.
fn version(run: &Running, object: &str) -> u64 {
    let path = "jsonpath={.metadata.resourceVersion}";
    let version = run.kubectl(&["get", object, "-o", path], "");
    version.parse().expect("a number")
}

#[test]
fn nothing_moves_from_or_to_what_is_being_deleted() {
    let Some(run) = start() else { return };
    keep(&run, "modelfamily/two");
    run.kubectl(&["delete", "modelfamily", "two", "--wait=false"], "");
    let why = "spec.modelFamily would name modelfamily/default/two, which is being deleted";
    assert_refused(&run, "two", why, "kindex why modelfamily/two -n default");

    run.kubectl(&["apply", "-f", "-"], &family("three"));
    // It waits for the model.
    run.kubectl(&["delete", "modelfamily", "one", "--wait=false"], "");
    let why = "spec.modelFamily named modelfamily/default/one, which is being deleted";
    assert_refused(&run, "three", why, "kindex why modelfamily/one -n default");
    assert_other_fields_change(&run);
}

#[test]
fn what_is_being_deleted_goes_on_naming_what_it_named() {
    let Some(run) = start() else { return };
    keep(&run, "model/m");
    run.kubectl(&["delete", "model", "m", "--wait=false"], "");
    let why = "it is being deleted, so that spec.modelFamily cannot change";
    assert_refused(&run, "two", why, "kindex why model/m -n default");
    assert_other_fields_change(&run);
}

/// From now on, the object stays while it is deleted.
fn keep(run: &Running, object: &str) {
    let path = "jsonpath={.metadata.finalizers}";
    wait_for("its finalizers", || {
        !run.kubectl(&["get", object, "-o", path], "").is_empty()
    });
    let added = json!([{"op": "add", "path": "/metadata/finalizers/-", "value": CLEANUP}]).to_string();
    run.kubectl(&["patch", object, "--type=json", "-p", &added], "");
}

/// Neither a move nor a plain update lets the model name that family. Both say why, and nothing is written.
fn assert_refused(run: &Running, to: &str, why: &str, see: &str) {
    for (by, refused) in [("move", moved(run, to, &[])), ("update", updated(run, to))] {
        assert_eq!(refused.status.code(), Some(1), "{by}");
        let said = notes(&refused);
        assert!(said.contains(why) && said.contains(see), "{by}: {said}");
    }
    assert!(named(run) == "one" && has_reference(run, "one") && !has_reference(run, to));
}

/// A plain update by the API server.
fn updated(run: &Running, to: &str) -> Output {
    let server = server(run);
    let patch = json!({"spec": {"modelFamily": {"name": to}}}).to_string();
    let mut command = kubectl::command("/nonexistent");
    command.args(["--server", &server, "patch", "model", "m", "--type=merge", "-p", &patch]);
    kubectl::run(command, "")
}

fn server(run: &Running) -> String {
    format!("http://{}", run.api().expect("it says where"))
}

fn assert_other_fields_change(run: &Running) {
    let labeled = run.kubectl(&["--server", &server(run), "label", "model", "m", "a=b"], "");
    assert!(labeled.contains("labeled"), "{labeled}");
}

/// An archived model names another family, by the API server's own write.
#[test]
fn an_archived_object_moves_as_well() {
    let Some(run) = start() else { return };
    run.kubectl(&["annotate", "model", "m", "michelangelo/Immutable=true"], "");
    wait_for("the archive", || {
        run.kubectl(&["get", "models", "-o", "name"], "").is_empty()
    });
    // The graph makes a row of the reference once the model is gone.
    wait_for("the row", || {
        !finalizers(&run, "one").contains("model.michelangelo.api/")
    });
    let done = moved(&run, "two", &[]);
    assert!(done.status.success(), "{}", notes(&done));
    let model = run.get(&["models/m", "-o", "json"]);
    assert!(
        model.contains(r#""name":"two""#) || model.contains(r#""name": "two""#),
        "{model}"
    );
    assert!(is_held(&run, "two") && !is_held(&run, "one"));
}

/// By a finalizer or, where the holder is archived, a row.
fn is_held(run: &Running, family: &str) -> bool {
    let listed = run.command(&["references", "list", &format!("modelfamily/{family}"), "-o", "json"]);
    assert!(listed.status.success(), "{}", notes(&listed));
    let listed: Value = serde_json::from_str(&text(&listed)).expect("JSON");
    let mut references = listed["references"].as_array().expect("a list").iter();
    references.any(|reference| reference.to_string().contains("model.michelangelo.api/"))
}

#[test]
fn a_move_against_a_deletion_has_one_winner() {
    let Some(run) = start() else { return };
    for round in 0..4 {
        let (from, to) = (named(&run), format!("to-{round}"));
        run.kubectl(&["apply", "-f", "-"], &family(&to));
        let victim = if round % 2 == 0 { to.clone() } else { from.clone() };
        let done = thread::scope(|scope| {
            let deleting = scope.spawn(|| run.kubectl(&["delete", "modelfamily", &victim, "--wait=false"], ""));
            let done = moved(&run, &to, &[]);
            deleting.join().expect("kubectl runs");
            done
        });
        let now = named(&run);
        let expected = if done.status.success() { &to } else { &from };
        assert_eq!(now, *expected, "{}", notes(&done));
        assert!(
            has_reference(&run, &now),
            "what is named is held: {}",
            finalizers(&run, &now)
        );
        if now == victim {
            // It waits for the model, which is let go by a field that names nothing.
            let free = r#"{"spec":{"modelFamily":null}}"#;
            run.kubectl(&["patch", "model", "m", "--type=merge", "-p", free], "");
            run.kubectl(
                &[
                    "wait",
                    "--for=delete",
                    "--timeout=240s",
                    &format!("modelfamily/{victim}"),
                ],
                "",
            );
            let back = format!("back-{round}");
            run.kubectl(&["apply", "-f", "-"], &family(&back));
            let named = json!({"spec": {"modelFamily": {"name": back, "namespace": "default"}}}).to_string();
            run.kubectl(&["patch", "model", "m", "--type=merge", "-p", &named], "");
            wait_for("the reference", || has_reference(&run, &back));
        } else {
            run.kubectl(
                &[
                    "wait",
                    "--for=delete",
                    "--timeout=240s",
                    &format!("modelfamily/{victim}"),
                ],
                "",
            );
        }
    }
}
