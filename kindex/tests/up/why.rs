//! References with kubectl, `kindex why` and `kindex references`: what an object that does not go waits for.

use std::process::Output;

use kindex_harness::ports::Closed;
use serde_json::Value;

use super::process::{Running, kubectl_is_there, wait_for};

const OBJECTS: &str = "
apiVersion: michelangelo.api/v2
kind: ModelFamily
metadata: {name: fraud, namespace: default}
spec: {name: fraud}
---
apiVersion: michelangelo.api/v2
kind: Model
metadata: {name: one, namespace: default}
spec: {modelFamily: {name: fraud, namespace: default}}
";
const FOREIGN: &str = "server.other.example.com/7f7a15ab-f1cc-4f3b-b1c0-232ae8d852ce";
const REFERENCES: &str = "/api/v1/modelfamilys/default/fraud/references";

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn notes(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn why_names_what_an_object_waits_for_until_it_goes() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&[]);
    let server = format!("http://{}", run.api().expect("it says where"));
    let kubectl = |args: &[&str]| run.kubectl(&[&["--server", &server], args].concat(), "");
    run.kubectl(&["apply", "-f", "-"], OBJECTS);
    let uid = run.kubectl(&["get", "model", "one", "-o", "jsonpath={.metadata.uid}"], "");
    wait_for("the model in SQL", || {
        run.get(&["models", "-n", "default"]).contains("one")
    });
    let held = format!("{REFERENCES}/model.michelangelo.api/{uid}");
    run.kubectl(&["--server", &server, "replace", "--raw", &held, "-f", "-"], "{}");
    let listed: Value = serde_json::from_str(&kubectl(&["get", "--raw", REFERENCES])).expect("JSON");
    assert_eq!(listed["references"][0]["holder"]["name"], "one", "{listed}");

    let live = text(&run.command(&["why", "modelfamily/fraud"]));
    assert!(
        live.ends_with(
            "Nobody has deleted it. If somebody does, these go first:\n  model/default/one: somebody has to delete it\n"
        ),
        "{live}"
    );

    kubectl(&["delete", "modelfamily", "fraud", "--wait=false"]);
    let why = run.command(&["why", "modelfamily/fraud"]);
    let said = text(&why);
    assert!(why.status.success(), "{}", notes(&why));
    assert!(said.starts_with("modelfamily/default/fraud  Deleting"), "{said}");
    assert!(said.contains("└── model/default/one  Live"), "{said}");
    assert!(said.contains("(spec.modelFamily: block, reference)"), "{said}");
    assert!(
        said.ends_with("In the end it waits for:\n  model/default/one: nobody has deleted it\n"),
        "{said}"
    );
    let json: Value =
        serde_json::from_str(&text(&run.command(&["why", "modelfamily/fraud", "-o", "json"]))).expect("JSON");
    assert_eq!(json["holders"][0]["state"], "Live", "{json}");

    run.kubectl(&["delete", "model", "one"], "");
    kubectl(&["delete", "--raw", &held]);
    wait_for("the family to go", || {
        !run.kubectl(&["get", "modelfamilys", "-o", "name"], "")
            .contains("fraud")
    });
    let gone = run.command(&["why", "modelfamily/fraud"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(notes(&gone).contains("not found"), "{}", notes(&gone));
    assert_eq!(run.command(&["why", "modelfamily"]).status.code(), Some(2));
}

#[test]
fn why_shows_what_is_known_where_a_service_does_not_answer() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&[]);
    let server = format!("http://{}", run.api().expect("it says where"));
    run.kubectl(&["apply", "-f", "-"], OBJECTS);
    let foreign = format!("{REFERENCES}/{FOREIGN}");
    run.kubectl(&["--server", &server, "replace", "--raw", &foreign, "-f", "-"], "{}");
    wait_for("the model in SQL", || {
        run.get(&["models", "-n", "default"]).contains("one")
    });
    let asked = [
        "why",
        "modelfamily/fraud",
        "--service",
        "other.example.com=http://127.0.0.1:1",
    ];
    let why = run.command(&asked);
    let said = text(&why);
    assert_eq!(why.status.code(), Some(1), "{said}");
    assert!(said.contains("server.other.example.com/7f7a15ab"), "{said}");
    assert!(
        said.contains("note: the service other.example.com at http://127.0.0.1:1 does not say"),
        "{said}"
    );
    assert!(said.contains("model/default/one  Live"), "{said}");
    assert!(notes(&why).contains("a part of it is missing"), "{}", notes(&why));
    let wrong = run.command(&["why", "modelfamily/fraud", "--service", "nonsense"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(!notes(&why).contains(" has no effect"), "{}", notes(&why));
    a_service_that_has_no_holder_is_noted(&run);

    let listed = run.command(&["references", "list", "modelfamily/fraud"]);
    assert!(text(&listed).contains(FOREIGN), "{}", text(&listed));
    let dropped = [
        "references",
        "drop",
        "modelfamily/fraud",
        FOREIGN,
        "--reason",
        "restored from a backup",
    ];
    let refused = run.command(&dropped);
    assert_eq!(refused.status.code(), Some(2), "{}", notes(&refused));
    assert!(notes(&refused).contains("is held by"), "{}", notes(&refused));
    let done = run.command(&[&dropped[..], &["--force"]].concat());
    assert!(done.status.success(), "{}", notes(&done));
    assert!(!text(&run.command(&["references", "list", "modelfamily/fraud"])).contains(FOREIGN));
    let events = run.kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"], "");
    assert!(events.contains("with force: restored from a backup"), "{events}");
    let annotations = ["get", "modelfamily", "fraud", "-o", "jsonpath={.metadata.annotations}"];
    let annotations = run.kubectl(&annotations, "");
    says_who_dropped(&annotations);
    assert!(
        !annotations.contains("release-references"),
        "it excuses no other: {annotations}"
    );
    let absent = run.command(&dropped);
    assert_eq!(absent.status.code(), Some(1), "it is not there any more");
    let said = notes(&absent);
    assert!(
        said.ends_with("\n  hint: `kindex references list` shows them\n"),
        "{said}"
    );
}

/// As if the cluster knew nothing of it, or a holder that was not looked up were gone.
#[test]
fn why_shows_what_the_cluster_knows_while_the_database_is_away() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&[]);
    let server = format!("http://{}", run.api().expect("it says where"));
    run.kubectl(&["apply", "-f", "-"], OBJECTS);
    let uid = run.kubectl(&["get", "model", "one", "-o", "jsonpath={.metadata.uid}"], "");
    wait_for("the model in SQL", || {
        run.get(&["models", "-n", "default"]).contains("one")
    });
    let references = [format!("model.michelangelo.api/{uid}"), FOREIGN.to_owned()];
    for reference in &references {
        let held = format!("{REFERENCES}/{reference}");
        run.kubectl(&["--server", &server, "replace", "--raw", &held, "-f", "-"], "{}");
    }
    let closed = Closed::take();
    let database = format!("mysql://root@{}/michelangelo", closed.address);
    let without = |object: &str| run.command(&["why", object, "--database", &database]);

    let why = without("modelfamily/fraud");
    let said = text(&why);
    assert_eq!(why.status.code(), Some(1), "{said}{}", notes(&why));
    assert!(said.starts_with("modelfamily/default/fraud  Live"), "{said}");
    assert!(said.contains("note: what is archived is unknown"), "{said}");
    for reference in &references {
        assert!(said.contains(&format!("{reference}  Unknown")), "{said}");
    }
    assert!(!said.contains("left over"), "{said}");
    assert!(notes(&why).contains("a part of it is missing"), "{}", notes(&why));

    let absent = without("modelfamily/absent");
    let said = notes(&absent);
    assert_eq!(absent.status.code(), Some(1), "{said}");
    assert!(
        said.contains("hint: does the database run") && !said.contains("not found"),
        "it may be archived: {said}"
    );
}

fn a_service_that_has_no_holder_is_noted(run: &Running) {
    // The second one is the group of its own kinds.
    for elsewhere in [
        "elsewhere.example.com=http://127.0.0.1:1",
        "michelangelo.api=http://127.0.0.1:1",
    ] {
        let unasked = notes(&run.command(&["why", "modelfamily/fraud", "--service", elsewhere]));
        let note = format!("note: --service {elsewhere} has no effect");
        assert!(unasked.contains(&note), "{unasked}");
    }
}

/// As if the holder let go of it.
#[test]
fn a_drop_says_that_a_field_names_the_object_as_before() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&["--deletion=false"]);
    let server = format!("http://{}", run.api().expect("it says where"));
    run.kubectl(&["apply", "-f", "-"], OBJECTS);
    let uid = run.kubectl(&["get", "model", "one", "-o", "jsonpath={.metadata.uid}"], "");
    wait_for("the model in SQL", || {
        run.get(&["models", "-n", "default"]).contains("one")
    });
    let reference = format!("model.michelangelo.api/{uid}");
    let held = format!("{REFERENCES}/{reference}");
    run.kubectl(&["--server", &server, "replace", "--raw", &held, "-f", "-"], "{}");
    let drop = [
        "references",
        "drop",
        "modelfamily/fraud",
        &reference,
        "--reason",
        "a test",
    ];
    let refused = notes(&run.command(&drop));
    assert!(refused.contains("hint: delete the holder instead"), "{refused}");
    let dropped = run.command(&[&drop[..], &["--force"]].concat());
    assert!(text(&dropped).contains("released"), "{}", notes(&dropped));
    let said = notes(&dropped);
    let note = "note: model/default/one is Live, and its spec.modelFamily still names modelfamily/fraud: \
                `kindex deletion` sets the reference again\n  hint: `kindex move model/one --to modelfamily/OTHER`";
    assert!(said.contains(note), "{said}");
    let wrong = ["references", "drop", "modelfamily/fraud", "foo", "--reason", "a test"];
    let said = notes(&run.command(&wrong));
    assert!(
        said.contains("like cluster.compute.example.com/7f7a15ab-f1cc-"),
        "{said}"
    );
}

/// Who dropped the reference is said in the annotation of its holder.
fn says_who_dropped(annotations: &str) {
    let uid = FOREIGN.split('/').next_back().expect("a uid");
    let (_, said) = annotations
        .split_once(&format!("michelangelo.api/dropped-{uid}"))
        .unwrap_or_else(|| panic!("{annotations}"));
    // The user of the embedded cluster, and not of the machine.
    let expected = format!("{FOREIGN} was released by kindex with force: restored from a backup");
    assert!(said.contains(&expected), "{annotations}");
}

/// Events are gone after an hour; SQL keeps what the object says.
#[test]
fn who_dropped_a_reference_on_an_archived_object_stays_with_its_row() {
    if !kubectl_is_there() {
        return;
    }
    let run = Running::start(&[]);
    let server = format!("http://{}", run.api().expect("it says where"));
    let family = OBJECTS.split("---").next().expect("a manifest");
    run.kubectl(&["apply", "-f", "-"], family);
    run.kubectl(&["annotate", "modelfamily", "fraud", "michelangelo/Immutable=true"], "");
    wait_for("the archive", || {
        run.kubectl(&["get", "modelfamilys", "-o", "name"], "").is_empty()
    });
    let held = format!("{REFERENCES}/{FOREIGN}");
    run.kubectl(&["--server", &server, "replace", "--raw", &held, "-f", "-"], "{}");
    let dropped = run.command(&[
        "references",
        "drop",
        "modelfamily/fraud",
        FOREIGN,
        "--force",
        "--reason",
        "restored from a backup",
    ]);
    assert!(dropped.status.success(), "{}", notes(&dropped));
    assert!(!notes(&dropped).contains("cannot be annotated"), "{}", notes(&dropped));
    let delete = ["--server", &server, "delete", "modelfamily", "fraud", "--wait=false"];
    run.kubectl(&delete, "");
    wait_for("the end of the family", || {
        run.get(&["modelfamilys", "--deleted"]).contains("deleted")
    });
    says_who_dropped(&run.get(&["modelfamilys", "--deleted", "-o", "json"]));
}
