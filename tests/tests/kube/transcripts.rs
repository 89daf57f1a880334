//! One transcript for each verb of kubectl.

use super::cluster::{TestCluster, WIDGETS};
use super::kubectl::{Running, Transcript, kubectl_is_there};

const WIDGET: &str = "
apiVersion: example.com/v1
kind: Widget
metadata:
  name: a
  labels: {app: web}
spec:
  size: 3
";

/// Compares a transcript with the one that was reviewed.
fn reviewed(name: &str, transcript: &Transcript<'_>) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("snapshots");
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, transcript.text()));
}

async fn with_widget() -> TestCluster {
    let cluster = TestCluster::with_widgets().await;
    let mut transcript = Transcript::of(&cluster);
    transcript.run_with("apply -f -", WIDGET).await;
    assert_eq!(transcript.text(), "$ kubectl apply -f -\nwidget.example.com/a created");
    cluster
}

#[tokio::test]
async fn apply() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = TestCluster::empty().await;
    let mut transcript = Transcript::of(&cluster);
    transcript.run_with("apply -f -", WIDGETS).await;
    transcript
        .run("wait --for condition=established crd/widgets.example.com")
        .await;
    transcript.run_with("apply -f -", WIDGET).await;
    transcript.run_with("apply -f -", WIDGET).await;
    transcript
        .run_with("apply -f -", &WIDGET.replace("size: 3", "size: 4"))
        .await;
    transcript
        .run_with("create -f -", &WIDGET.replace("size: 3", "size: 3\n  weight: 1"))
        .await;
    transcript
        .run_with("apply -f -", &WIDGET.replace("size: 3", "size: big\n  color: pink"))
        .await;
    transcript
        .run_with("apply -f - --dry-run=server", &WIDGET.replace("name: a", "name: b"))
        .await;
    transcript.run_with("apply -f -", WIDGETS).await;
    transcript.run("get widgets").await;
    reviewed("apply", &transcript);
    let mut strict = Transcript::of(&cluster);
    strict
        .run_with("apply -f -", &WIDGET.replace("size: 3", "size: 3\n  weight: 1"))
        .await;
    let text = strict.text();
    assert!(
        text.ends_with("strict decoding error: unknown field \"spec.weight\"\n(exit 1)"),
        "{text}"
    );
}

#[tokio::test]
async fn get() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = with_widget().await;
    cluster.create("b", 9).await;
    let mut transcript = Transcript::of(&cluster);
    transcript.run("get widgets").await;
    transcript.run("get wd -o wide -l app=web").await;
    transcript.run("get toys -A -l '!app'").await;
    transcript
        .run("get widgets --field-selector spec.color=red,metadata.name!=a -o name")
        .await;
    transcript.run("get widget a -o jsonpath={.spec.color}").await;
    transcript.run("get widget c").await;
    transcript.run("get gadgets").await;
    transcript.run("get namespaces,crd -o name").await;
    transcript.run("get widgets --chunk-size=1").await;
    reviewed("get", &transcript);
}

#[tokio::test]
async fn get_as_yaml() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = with_widget().await;
    let mut transcript = Transcript::of(&cluster);
    transcript.run("get widget a -o yaml").await;
    transcript.run("get widget a -o yaml --show-managed-fields").await;
    reviewed("get_as_yaml", &transcript);
}

#[tokio::test]
async fn describe() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = with_widget().await;
    let uid = cluster.widgets().get("a").await.unwrap().metadata.uid.unwrap();
    let event = format!(
        "
apiVersion: events.k8s.io/v1
kind: Event
metadata: {{name: a.1}}
eventTime: 2026-01-01T00:00:00.000001Z
regarding: {{apiVersion: example.com/v1, kind: Widget, name: a, namespace: default, uid: {uid}}}
action: Painted
reason: Painted
note: It looks better now
type: Normal
reportingController: painter
reportingInstance: painter-1
"
    );
    let mut transcript = Transcript::of(&cluster);
    transcript.run_with("create -f -", &event).await;
    transcript
        .run("get events -o custom-columns=REASON:.reason,MESSAGE:.message")
        .await;
    transcript.run("describe widget a").await;
    transcript.run("describe namespace default").await;
    let text = transcript.text();
    assert!(text.contains("It looks better now"), "{text}");
    assert!(text.contains("Status:       Active"), "{text}");
}

#[tokio::test]
async fn edit_and_patch() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = with_widget().await;
    let mut transcript = Transcript::of(&cluster);
    transcript.run("edit widget a").await;
    transcript
        .run("patch widget a --type merge -p '{\"spec\":{\"color\":\"blue\"}}'")
        .await;
    transcript
        .run("patch widget a --type merge -p '{\"spec\":{\"color\":\"blue\"}}'")
        .await;
    transcript
        .run("patch widget a --type json -p '[{\"op\":\"add\",\"path\":\"/spec/tags\",\"value\":[\"x\"]}]'")
        .await;
    transcript
        .run("patch widget a --type json -p '[{\"op\":\"remove\",\"path\":\"/spec/nothing\"}]'")
        .await;
    transcript
        .run("patch widget a --type merge -p '{\"spec\":{\"size\":0}}'")
        .await;
    transcript
        .run("patch widget a --type strategic -p '{\"spec\":{\"size\":1}}'")
        .await;
    transcript
        .run("patch widget a --subresource status --type merge -p '{\"status\":{\"phase\":\"Ready\"}}'")
        .await;
    transcript.run("get widget a -o wide").await;
    transcript.run("get widget a -o jsonpath={.metadata.generation}").await;
    reviewed("edit_and_patch", &transcript);
}

#[tokio::test]
async fn server_side_apply() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = TestCluster::with_widgets().await;
    let mut transcript = Transcript::of(&cluster);
    let other = WIDGET.replace("size: 3", "size: 5");
    transcript
        .run_with("apply --server-side --field-manager one -f -", WIDGET)
        .await;
    transcript
        .run_with("apply --server-side --field-manager one -f -", WIDGET)
        .await;
    transcript
        .run_with("apply --server-side --field-manager two -f -", &other)
        .await;
    transcript
        .run_with("apply --server-side --field-manager two --force-conflicts -f -", &other)
        .await;
    transcript
        .run_with(
            "apply --server-side --field-manager one -f -",
            &WIDGET.replace("size: 3", "weight: 1"),
        )
        .await;
    transcript.run("get widget a -o yaml --show-managed-fields").await;
    reviewed("server_side_apply", &transcript);
}

#[tokio::test]
async fn label_and_annotate() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = with_widget().await;
    let mut transcript = Transcript::of(&cluster);
    transcript.run("label widget a tier=gold").await;
    transcript.run("label widget a tier=silver").await;
    transcript.run("label widget a tier=silver --overwrite").await;
    transcript.run("label widget a 'tier=not good' --overwrite").await;
    transcript.run("annotate widget a note=hello").await;
    transcript.run("annotate widget a note-").await;
    transcript.run("label namespace default team=a").await;
    transcript.run("get widget -L tier").await;
    reviewed("label_and_annotate", &transcript);
}

#[tokio::test]
async fn delete() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = with_widget().await;
    let mut transcript = Transcript::of(&cluster);
    transcript
        .run("patch widget a --type merge -p '{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}'")
        .await;
    transcript.run("delete widget a --wait=false").await;
    transcript
        .run("get widget a -o jsonpath={.metadata.deletionGracePeriodSeconds}")
        .await;
    transcript
        .run("patch widget a --type merge -p '{\"metadata\":{\"finalizers\":[\"example.com/hold\",\"x.y/z\"]}}'")
        .await;
    transcript
        .run("patch widget a --type merge -p '{\"metadata\":{\"finalizers\":null}}'")
        .await;
    transcript.run("get widget a").await;
    transcript.run("create namespace shop").await;
    transcript.run("-n shop create configmap c --from-literal=k=v").await;
    transcript.run_with("-n shop apply -f -", WIDGET).await;
    transcript.run("-n shop get configmap,widget").await;
    transcript.run("delete namespace shop").await;
    transcript.run("-n shop get configmap,widget").await;
    transcript.run("delete namespace default").await;
    transcript.run("delete crd widgets.example.com").await;
    transcript.run("get widgets").await;
    reviewed("delete", &transcript);
}

#[tokio::test]
async fn get_and_watch() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = with_widget().await;
    let mut watch = Running::start(
        &cluster,
        "get widgets --watch -o custom-columns=NAME:.metadata.name,SIZE:.spec.size",
    );
    assert_eq!(watch.line().await, "NAME SIZE");
    assert_eq!(watch.line().await, "a 3");
    let mut table = Running::start(&cluster, "get widgets --watch --output-watch-events");
    assert_eq!(table.line().await, "EVENT NAME SIZE COLOR");
    assert_eq!(table.line().await, "ADDED a 3 red");
    cluster.resize("a", 4).await;
    assert_eq!(watch.line().await, "a 4");
    assert_eq!(table.line().await, "MODIFIED a 4 red");
    cluster.create("b", 1).await;
    assert_eq!(watch.line().await, "b 1");
    assert_eq!(table.line().await, "ADDED b 1 red");
    cluster.widgets().delete("b", &Default::default()).await.unwrap();
    assert_eq!(table.line().await, "DELETED b 1 red");
}

#[tokio::test]
async fn discovery_and_explain() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = TestCluster::with_widgets().await;
    let mut transcript = Transcript::of(&cluster);
    transcript.run("api-resources -o wide").await;
    transcript.run("api-versions").await;
    transcript.run("explain widget").await;
    transcript.run("explain widget.spec.size").await;
    transcript.run("explain widget.spec --recursive").await;
    reviewed("discovery_and_explain", &transcript);
}

#[tokio::test]
async fn unserved_kinds() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = TestCluster::with_widgets().await;
    let mut transcript = Transcript::of(&cluster);
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n";
    transcript.run_with("apply -f -", pod).await;
    transcript.run_with("create -f -", pod).await;
    transcript
        .run_with("apply -f -", &WIDGET.replace("kind: Widget", "kind: Wigdet"))
        .await;
    transcript.run("get pods").await;
    reviewed("unserved_kinds", &transcript);
}

#[tokio::test]
async fn questions_about_the_caller() {
    if !kubectl_is_there() {
        return;
    }
    let cluster = TestCluster::with_widgets().await;
    let mut transcript = Transcript::of(&cluster);
    transcript.run("auth whoami").await;
    transcript.run("auth can-i create widgets").await;
    transcript.run("auth can-i get /healthz").await;
    transcript.run("auth can-i --list").await;
    transcript.run("api-resources --api-group authorization.k8s.io").await;
    transcript.run("api-resources --api-group authentication.k8s.io").await;
    reviewed("questions_about_the_caller", &transcript);
}
