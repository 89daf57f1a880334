//! Trigger and migrator as they run, on a kube-apiserver.

mod stage;

mod repair;

use std::collections::BTreeSet;

use kindex_harness::wait::eventually;
use kindex_migrator::cluster::install::manifests;
use kindex_migrator::wire::StorageVersionMigrationStatus;
use kindex_migrator::wire::definition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use stage::{GROUP, NAME, Stage, condition, hash};

/// How often a migrator is killed within one migration of ten pages.
const KILLS: u32 = 5;

/// A cell of the status.
fn count(status: &StorageVersionMigrationStatus, name: &str) -> u64 {
    let status = serde_json::to_value(status).expect("JSON");
    status["pass"][name].as_u64().expect("a number")
}

fn listed(status: &StorageVersionMigrationStatus) -> u64 {
    let cells = ["rewritten", "unchanged", "conflicts", "gone", "refused"];
    cells.iter().map(|name| count(status, name)).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_lives_through_every_step_of_its_life() {
    let Some(stage) = Stage::start().await else { return };
    stage.create_pets("v1", 50).await;
    let running = stage.run(stage.client.clone(), true, 0);
    let (v1, v2) = (hash("v1"), hash("v2"));
    eventually("the first migration", async || {
        stage.state().await == (vec![v1.clone()], v1.clone())
    })
    .await;
    let first = stage.versions().await;

    let before = stage.heartbeat().await.expect("a version");
    stage.store_pets_in("v2").await;
    let seen = stage.states_since(&before, &(vec![v2.clone()], v2.clone())).await;
    assert!(seen.contains(&(vec![v1.clone(), v2.clone()], v2.clone())), "{seen:?}");
    let second = stage.versions().await;
    assert!(
        first.iter().all(|(name, version)| second[name] != *version),
        "all are rewritten"
    );
    let run = stage.status(None).await.expect("a status").run();
    assert_eq!((run.pass.rewritten, run.all_passes().rewritten), (0, 50));

    // There and back at once: what is current is what was current, and yet everything is looked at again.
    let before = stage.status(None).await.expect("a status");
    stage.store_pets_in("v1").await;
    stage.store_pets_in("v2").await;
    eventually("the migration after two changes", async || {
        let status = stage.status(None).await.unwrap_or_default();
        let is_new = status.definition.is_some() && status.definition != before.definition;
        let succeeded = condition(&status, "Succeeded").is_some_and(|(holds, ..)| holds == "True");
        is_new && succeeded && stage.state().await == (vec![v2.clone()], v2.clone())
    })
    .await;

    // A process that was away for a moment believes the state. The API server may still have shown v1 in discovery.
    running.stop().await;
    let running = stage.run(stage.client.clone(), true, 0);
    let mut seen = BTreeSet::new();
    eventually("a round that believes the state", async || {
        let state = stage.state().await;
        seen.insert(state.clone());
        running.metrics.last_reconciled.get() > 0.0 && state == (vec![v2.clone()], v2.clone())
    })
    .await;
    let began_anew = seen.iter().any(|(listed, _)| listed.contains(&"Unknown".to_owned()));
    assert!(!began_anew, "{seen:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_migration_stops_and_writes_nothing_more() {
    let Some(stage) = Stage::start().await else { return };
    stage.create_pets("v1", 200).await;
    let before = stage.versions().await;
    stage.store_pets_in("v2").await;
    let running = stage.run(stage.client.clone(), false, 20);
    stage.migrate("by-hand").await;
    eventually("a page", async || {
        stage
            .status(Some("by-hand"))
            .await
            .is_some_and(|status| listed(&status) >= 20)
    })
    .await;
    let deleted = stage.migrations().delete("by-hand", &DeleteParams::default()).await;
    deleted.expect("deleted");
    eventually("the end of the run", async || running.metrics.running.get() == 0).await;
    let stopped = stage.versions().await;
    let untouched = before
        .iter()
        .filter(|(name, version)| stopped[*name] == **version)
        .count();
    assert!((1..200).contains(&untouched), "{untouched} were not reached");
    running.stop().await;
    assert_eq!(stage.versions().await, stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_migrator_goes_on_where_it_was_and_never_before() {
    let Some(stage) = Stage::start().await else { return };
    stage.create_pets("v1", 200).await;
    stage.store_pets_in("v2").await;
    // Slow until the last kill: a page a second.
    let writes_per_second = |kills| if kills < KILLS { 20 } else { 0 };
    let mut running = stage.run(stage.client.clone(), true, writes_per_second(0));
    let (mut reached, mut kills, mut kept) = ((0, 0), 0, (0, 0));
    eventually("success after kills", async || {
        let Some(status) = stage.status(None).await else {
            return false;
        };
        let now = (status.passes, listed(&status));
        assert!(now >= reached, "{now:?} after {reached:?}");
        reached = now;
        if kills < KILLS && now > kept {
            (kills, kept) = (kills + 1, now);
            let next = stage.run(stage.client.clone(), true, writes_per_second(kills));
            std::mem::replace(&mut running, next).kill().await;
        }
        condition(&status, "Succeeded").is_some_and(|(holds, ..)| holds == "True")
    })
    .await;
    assert_eq!(kills, KILLS);
    eventually("the state", async || {
        stage.state().await == (vec![hash("v2")], hash("v2"))
    })
    .await;
    running.stop().await;
}

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{group}/v1"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Refuses to let these pets be changed.
async fn protect(stage: &Stage, names: &[&str]) {
    let group = "admissionregistration.k8s.io";
    let list = names
        .iter()
        .map(|name| format!("'{name}'"))
        .collect::<Vec<_>>()
        .join(", ");
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "protected"},
        "spec": {"failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": [GROUP], "apiVersions": ["*"],
                "operations": ["UPDATE"], "resources": ["pets"]}]},
            "validations": [{"expression": format!("!(object.metadata.name in [{list}])"),
                "message": "this pet is protected"}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "protected"},
        "spec": {"policyName": "protected", "validationActions": ["Deny"]}});
    let policies = resource(group, "ValidatingAdmissionPolicy", "validatingadmissionpolicies");
    stage.apply(&policies, &policy).await;
    let bindings = resource(
        group,
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
    );
    stage.apply(&bindings, &binding).await;
    let pets: Api<DynamicObject> =
        Api::namespaced_with(stage.client.clone(), "default", &resource(GROUP, "Pet", "pets"));
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    eventually("the policy", async || {
        let patch = json!({"metadata": {"labels": {"a": "b"}}});
        let refused = pets.patch(names[0], &params, &Patch::Merge(&patch)).await;
        refused.is_err()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_objects_are_named_and_all_others_are_migrated() {
    let Some(stage) = Stage::start().await else { return };
    stage.create_pets("v1", 1_000).await;
    let protected = ["pet-0", "pet-500", "pet-999"];
    protect(&stage, &protected).await;
    stage.store_pets_in("v2").await;
    let running = stage.run(stage.client.clone(), true, 0);
    let mut status = StorageVersionMigrationStatus::default();
    eventually("the end", async || {
        status = stage.status(None).await.unwrap_or_default();
        condition(&status, "Failed").is_some()
    })
    .await;
    let (holds, reason, _) = condition(&status, "Succeeded").expect("a condition");
    assert_eq!((holds.as_str(), reason.as_str()), ("False", "ObjectsRefused"));
    assert_eq!((count(&status, "rewritten"), count(&status, "refused")), (997, 3));
    let json = serde_json::to_value(&status.refused).expect("JSON");
    let refused = json.as_array().expect("a list");
    let named: BTreeSet<_> = refused.iter().filter_map(|one| one["object"].as_str()).collect();
    assert_eq!(
        named,
        protected
            .map(|name| format!("default/{name}"))
            .iter()
            .map(String::as_str)
            .collect()
    );
    assert!(
        refused
            .iter()
            .all(|one| one["why"].as_str().is_some_and(|why| why.contains("protected")))
    );
    assert_eq!(stage.state().await.0, ["Unknown"]);

    // Nothing is tried again by itself for an hour, and at once where the definition changes.
    let names = async || {
        let listed = stage.migrations().list(&kube::api::ListParams::default()).await;
        let mut names = listed.expect("a list").items.into_iter().map(|one| one.name_any());
        names.next()
    };
    let failed = names().await;
    let before = stage.heartbeat().await;
    let mut touched = 0;
    eventually("another round", async || {
        touched += 1;
        stage.touch_definition(touched).await;
        stage.heartbeat().await != before
    })
    .await;
    assert_eq!(names().await, failed);
    stage.store_pets_in("v1").await;
    eventually("another migration", async || names().await != failed).await;
    running.stop().await;
}

/// What bob may do: what the emitted role grants, with pets as the kind, and these verbs on pets.
async fn grant(stage: &Stage, verbs: &[&str]) {
    let text = include_str!("../../../../schema/rbac/migrator.yaml");
    let emitted: Value = serde_saphyr::from_str(text).expect("YAML");
    let (of_kinds, others): (Vec<Value>, Vec<Value>) = emitted["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .cloned()
        .partition(|rule| rule["verbs"] == json!(["list", "patch"]));
    assert!(!of_kinds.is_empty() && !others.is_empty());
    let pets = json!({"apiGroups": [GROUP], "resources": ["pets"], "verbs": verbs});
    let rules: Vec<Value> = others.into_iter().chain([pets]).collect();
    let group = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "migrator"}, "rules": rules});
    stage
        .apply(&resource(group, "ClusterRole", "clusterroles"), &role)
        .await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "migrator"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "migrator"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "bob"}]});
    let bindings = resource(group, "ClusterRoleBinding", "clusterrolebindings");
    stage.apply(&bindings, &binding).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_named_before_anything_is_written_and_the_emitted_role_has_all() {
    let Some(stage) = Stage::start().await else { return };
    stage.create_pets("v1", 3).await;
    let before = stage.versions().await;
    grant(&stage, &["list"]).await;
    stage.store_pets_in("v2").await;
    let running = stage.run(stage.client_of("bob"), true, 0);
    let mut status = StorageVersionMigrationStatus::default();
    eventually("the end", async || {
        status = stage.status(None).await.unwrap_or_default();
        condition(&status, "Failed").is_some()
    })
    .await;
    let (_, reason, message) = condition(&status, "Failed").expect("a condition");
    assert_eq!(reason, "Forbidden");
    assert!(message.contains("may not patch pets.zoo.example.com"), "{message}");
    assert_eq!(stage.versions().await, before);

    // It goes on by itself.
    grant(&stage, &["list", "patch"]).await;
    eventually("the migration", async || {
        stage.state().await == (vec![hash("v2")], hash("v2"))
    })
    .await;
    assert_eq!(running.migrator.not_ready(), Vec::<String>::new());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_of_others_that_would_drop_progress_stay_and_hold_the_migrator_up() {
    let Some(stage) = Stage::start().await else { return };
    let mut manifest = manifests().remove(1);
    manifest["metadata"]["labels"] = Value::Null;
    let schema = &mut manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    let pass = schema["properties"].as_object_mut().expect("properties").remove("pass");
    assert!(pass.is_some());
    stage.apply(&definition::resource(), &manifest).await;
    let api: Api<DynamicObject> = Api::all_with(stage.client.clone(), &definition::resource());
    let name = "storageversionmigrations.migration.k8s.io";
    let generation = api.get(name).await.expect("a definition").metadata.generation;
    let running = stage.run(stage.client.clone(), true, 0);
    eventually("the reason", async || {
        let reasons = running.migrator.not_ready();
        reasons
            .iter()
            .any(|why| why.contains("status.pass") && why.contains(name))
    })
    .await;
    let after = api.get(name).await.expect("a definition");
    assert_eq!(after.metadata.generation, generation);
    assert!(api.get_opt(NAME).await.expect("an answer").is_none());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_that_somebody_deletes_come_back_and_everything_is_looked_at_again() {
    let Some(stage) = Stage::start().await else { return };
    stage.create_pets("v1", 20).await;
    let running = stage.run(stage.client.clone(), true, 0);
    let verified = (vec![hash("v1")], hash("v1"));
    eventually("the first migration", async || stage.state().await == verified).await;
    let api: Api<DynamicObject> = Api::all_with(stage.client.clone(), &definition::resource());
    for manifest in manifests() {
        let name = manifest["metadata"]["name"].as_str().expect("a name");
        let before = api.get(name).await.expect("a definition").uid();
        api.delete(name, &DeleteParams::default()).await.expect("deleted");
        eventually("the definition", async || {
            let found = api.get_opt(name).await.expect("an answer");
            found.is_some_and(|found| found.uid() != before)
        })
        .await;
    }
    eventually("the state", async || stage.state().await == verified).await;
    eventually("readiness", async || running.migrator.not_ready().is_empty()).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_of_fields_in_a_version_that_was_dropped_keeps_them() {
    let Some(stage) = Stage::start().await else { return };
    stage.create_pets("v1", 1).await;
    let pets = |version: &str| {
        let pet = ApiResource {
            version: version.to_owned(),
            api_version: format!("{GROUP}/{version}"),
            ..resource(GROUP, "Pet", "pets")
        };
        Api::<DynamicObject>::namespaced_with(stage.client.clone(), "default", &pet)
    };
    let apply = async |version: &str, spec: Value| {
        let manifest = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Pet",
            "metadata": {"name": "owned"}, "spec": spec});
        let params = PatchParams::apply("owner");
        pets(version).patch("owned", &params, &Patch::Apply(&manifest)).await
    };
    apply("v1", json!({"a": 1, "b": 2})).await.expect("applied");
    stage.store_pets_in("v2").await;
    let running = stage.run(stage.client.clone(), true, 0);
    eventually("the migration", async || {
        stage.state().await == (vec![hash("v2")], hash("v2"))
    })
    .await;
    stage.drop_v1().await;
    stage.migrate("clean-up").await;
    eventually("the clean-up", async || {
        let status = stage.status(Some("clean-up")).await.unwrap_or_default();
        condition(&status, "Succeeded").is_some_and(|(holds, ..)| holds == "True")
    })
    .await;
    let cleaned = pets("v2").get("owned").await.expect("served");
    let versions = cleaned.managed_fields().iter().map(|entry| entry.api_version.clone());
    assert_eq!(versions.collect::<Vec<_>>(), [Some(format!("{GROUP}/v2"))]);
    let applied = apply("v2", json!({"a": 1})).await.expect("applied");
    assert_eq!(applied.data["spec"], json!({"a": 1}), "what its owner leaves out goes");
    running.stop().await;
}
