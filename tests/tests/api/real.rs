//! The API server over a real kube-apiserver: merged lists, and users with rights of RBAC, asked by kubectl over TLS.

use kindex_api::operations::RightsOf;
use kindex_harness::wait::eventually;
use serde_json::{Value, json};

use super::lists::every_object_is_on_one_page;
use super::program::{kubectl_at, kubectl_is_there};
use super::stage::{FINAL, Stage, manifest, send};

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_on_one_page_of_a_merged_list_of_kube_apiserver() {
    if let Some(stage) = Stage::on_control_plane(RightsOf::Server).await {
        every_object_is_on_one_page(stage).await;
    }
}

/// A namespace in which a user may do these with models.
pub(super) async fn grant(stage: &Stage, namespace: &str, user: &str, verbs: Value) {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    let named = |kind: &str, name: &str| json!({"kind": kind, "metadata": {"name": name}});
    let mut role = named("Role", user);
    role["rules"] = json!([{"apiGroups": ["michelangelo.api"], "resources": ["models"], "verbs": verbs}]);
    let mut binding = named("RoleBinding", user);
    binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user});
    binding["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]);
    let verbs = role["rules"][0]["verbs"].clone();
    for (path, object) in [
        ("/api/v1/namespaces".to_owned(), named("Namespace", namespace)),
        (format!("{rbac}/roles"), role),
        (format!("{rbac}/rolebindings"), binding),
    ] {
        let (code, answer) = send(&stage.cluster, "POST", &path, &object).await;
        assert!(matches!(code, 201 | 409), "{path}: {answer}");
    }
    let right = json!({"namespace": namespace, "group": "michelangelo.api", "resource": "models", "verb": verbs[0]});
    wait_for_right(stage, user, right).await;
}

/// Until kube-apiserver grants a right that was written down: it does so a moment later.
async fn wait_for_right(stage: &Stage, user: &str, right: Value) {
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let review = json!({"kind": "SubjectAccessReview", "spec": {"user": user, "resourceAttributes": right}});
    eventually(&format!("{user} is granted {right}"), async || {
        let (_, answer) = send(&stage.cluster, "POST", path, &review).await;
        answer["status"]["allowed"] == true
    })
    .await;
}

/// Somebody who may act as any user. A service account is none, whatever its user name says.
async fn grant_impersonation_of_users(stage: &Stage, user: &str) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let named = |kind: &str| json!({"kind": kind, "metadata": {"name": format!("acts-as-users-{user}")}});
    let mut role = named("ClusterRole");
    role["rules"] = json!([{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}]);
    let mut binding = named("ClusterRoleBinding");
    binding["roleRef"] =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"]});
    binding["subjects"] = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]);
    for (resource, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("{rbac}/{resource}");
        let (code, answer) = send(&stage.cluster, "POST", &path, &object).await;
        assert!(matches!(code, 201 | 409), "{path}: {answer}");
    }
    wait_for_right(stage, user, json!({"resource": "users", "verb": "impersonate"})).await;
}

struct Users<'a> {
    stage: &'a Stage,
    server: String,
    authority: String,
}

impl Users<'_> {
    async fn kubectl(&self, user: &str, line: &str, input: &str) -> (bool, String) {
        let token = match user {
            "nobody" => "nonsense".to_owned(),
            user => self.stage.ground.token(user),
        };
        let flags = [
            "--server",
            &self.server,
            "--certificate-authority",
            &self.authority,
            "--token",
            &token,
        ];
        kubectl_at(self.stage, &flags, line, input).await
    }

    async fn done(&self, user: &str, line: &str, input: &str, expected: &str) {
        let (content, output) = self.kubectl(user, line, input).await;
        assert!(content && output.contains(expected), "{user}: {line}: {output}");
    }

    async fn refused(&self, user: &str, line: &str, input: &str, expected: &str) {
        let (content, output) = self.kubectl(user, line, input).await;
        assert!(!content && output.contains(expected), "{user}: {line}: {output}");
        let knows = line.contains("secret-model");
        assert!(knows || !output.contains("secret-model"), "{user}: {line}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_kube_apiserver_have_their_own_rights_with_archived_objects_too() {
    let Some(stage) = Stage::on_control_plane(RightsOf::Caller).await else {
        return;
    };
    if !kubectl_is_there() {
        return;
    }
    let all = json!(["get", "list", "watch", "create", "update", "patch", "delete"]);
    grant(&stage, "team-a", "alice", all).await;
    grant(
        &stage,
        "team-b",
        "bob",
        json!(["get", "list", "watch", "create", "delete"]),
    )
    .await;
    let users = Users {
        stage: &stage,
        server: format!("https://{}", stage.secure),
        authority: stage.ground.directory.path().join("tls.crt").display().to_string(),
    };
    let model = |namespace: &str, name: &str| {
        let metadata = json!({"name": name, "namespace": namespace, "annotations": {FINAL: "true"}});
        manifest(metadata, json!({"algorithm": "one"})).to_string()
    };
    users
        .done("alice", "create -f -", &model("team-a", "a"), "created")
        .await;
    users
        .done("bob", "create -f -", &model("team-b", "secret-model"), "created")
        .await;
    for (namespace, name) in [("team-a", "a"), ("team-b", "secret-model")] {
        let path = format!("/apis/michelangelo.api/v2/namespaces/{namespace}/models/{name}");
        eventually("archived", async || {
            send(&stage.cluster, "GET", &path, &Value::Null).await.0 == 404
        })
        .await;
    }

    users.done("alice", "get models -n team-a", "", "one").await;
    users
        .done("alice", "label model a -n team-a team=x", "", "labeled")
        .await;
    users
        .done(
            "alice",
            "get models -n team-a -l team=x -o name",
            "",
            "model.michelangelo.api/a",
        )
        .await;
    users
        .done("bob", "get model secret-model -n team-b -o yaml", "", "algorithm: one")
        .await;
    users.done("admin", "get models -A", "", "secret-model").await;

    refuse_what_is_not_granted(&users).await;
    act_as_others(&users).await;
    users
        .done(
            "bob",
            "delete model secret-model -n team-b --timeout=240s",
            "",
            "deleted",
        )
        .await;
    users.refused("bob", "get model gone -n team-b", "", "NotFound").await;
    stage.end().await;
}

async fn act_as_others(users: &Users<'_>) {
    grant_impersonation_of_users(users.stage, "carol").await;
    let models = "get --raw /apis/michelangelo.api/v2/namespaces/team-a/models --as";
    users.done("carol", &format!("{models} alice"), "", "one").await;
    users
        .refused(
            "carol",
            &format!("{models} system:serviceaccount:team-a:default"),
            "",
            "serviceaccounts",
        )
        .await;
    users
        .done("admin", &format!("{models} alice --as-group team"), "", "one")
        .await;
}

async fn refuse_what_is_not_granted(users: &Users<'_>) {
    for line in [
        "get models -n team-b",
        "get models -A",
        "get model some -n team-b",
        "delete models --all -n team-b",
        "get --raw /apis/michelangelo.api/v2/namespaces/team-b/models?includeDeleted=true",
        "get --raw /apis/michelangelo.api/v2/namespaces/team-b/models?at=2126-01-01T00:00:00Z",
    ] {
        users.refused("alice", line, "", "orbidden").await;
    }
    users
        .refused("bob", "label model secret-model -n team-b a=b", "", "orbidden")
        .await;
    users.refused("bob", "get models -n team-a", "", "orbidden").await;
    users.refused("carol", "get models -n team-a", "", "orbidden").await;
    users
        .refused("nobody", "get models -n team-a", "", "must be logged in")
        .await;
    users
        .refused("alice", "get models -n team-a --as admin", "", "cannot impersonate")
        .await;
    users.done("admin", "get models -n team-a --as alice", "", "one").await;
    users
        .refused("admin", "get models -n team-b --as alice", "", "orbidden")
        .await;
}
