//! The deletion of a CustomResourceDefinition on kube-apiserver, which may forget it. Knows nothing of its objects.

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::wait::eventually_ok;

/// Deletes a definition with all its objects, and waits until it is gone.
///
/// To delete the objects, kube-apiserver lists them. After a change of the definition, it refuses every list until it
/// has read them from etcd again, its own list too ([140485]). It notes that failure in the status of the definition,
/// and tries again 5 ms later, with the definition that its informer has. On a busy machine, that one lacks the note,
/// and the next write conflicts. kube-apiserver then waits for the event of that other write, but ignores events of its
/// own notes. The next attempt comes with the resync of the informer, after up to five minutes. The event of any other
/// write is an attempt too, so this writes to the definition after each failure.
///
/// [140485]: https://github.com/kubernetes/kubernetes/pull/140485
///
/// # Panics
/// When it does not go; the message holds its finalizers and conditions.
pub async fn delete(definitions: &Api<DynamicObject>, name: &str) {
    let uid = definitions.get(name).await.expect("a definition").metadata.uid;
    let deleted = definitions.delete(name, &DeleteParams::default()).await;
    deleted.expect("deleted");
    let mut written: Option<String> = None;
    eventually_ok(&format!("the end of the definition {name}"), async || {
        let found = definitions.get_opt(name).await.expect("an answer");
        let Some(definition) = found.filter(|found| found.metadata.uid == uid) else {
            return Ok(());
        };
        // What this wrote last is not yet dealt with.
        if has_failed(&definition) && definition.metadata.resource_version != written {
            written = write(definitions, name, &definition).await;
        }
        let conditions = &definition.data["status"]["conditions"];
        let finalizers = definition.metadata.finalizers;
        Err(format!("finalizers {finalizers:?}, conditions {conditions}"))
    })
    .await;
}

/// Whether kube-apiserver could not delete the objects, when it last tried.
fn has_failed(definition: &DynamicObject) -> bool {
    let conditions = definition.data["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        let reason = condition["reason"].as_str();
        condition["type"] == "Terminating" && matches!(reason, Some("InstanceDeletionFailed" | "InstanceDeletionCheck"))
    })
}

/// Writes an annotation that nobody reads. Returns the version of the definition then, none if it is gone.
async fn write(definitions: &Api<DynamicObject>, name: &str, seen: &DynamicObject) -> Option<String> {
    let (uid, version) = (&seen.metadata.uid, &seen.metadata.resource_version);
    let patch = json!({"metadata": {"uid": uid, "annotations": {"tests.example.com/seen": version}}});
    let written = definitions
        .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    match written {
        Ok(definition) => definition.metadata.resource_version,
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => None,
        Err(error) => panic!("the definition {name}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::body::to_bytes;
    use axum::extract::{Request, State};
    use axum::response::{IntoResponse as _, Response};
    use axum::{Json, Router};
    use http::{Method, StatusCode};
    use kube::Client;
    use kube::core::ApiResource;
    use serde_json::Value;

    use super::*;

    /// A kube-apiserver that fails to delete a definition twice, and forgets it each time until somebody writes to it.
    #[derive(Default)]
    struct Forgetful {
        /// The versions that were seen by who wrote.
        written: Vec<Value>,
        /// Since the last write.
        looks: usize,
    }

    impl Forgetful {
        fn answer(&mut self, method: &Method, body: &[u8]) -> Response {
            if *method == Method::PATCH {
                let patch: Value = serde_json::from_slice(body).expect("JSON");
                let seen = &patch["metadata"]["annotations"]["tests.example.com/seen"];
                self.written.push(seen.clone());
                self.looks = 0;
            } else {
                self.looks += 1;
            }
            let version = match self.written.len() {
                0 => "1",
                // It tries again, and fails, after some looks.
                1 if self.looks < 3 => "2",
                1 => "3",
                _ => {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                        "reason": "NotFound", "code": 404});
                    return (StatusCode::NOT_FOUND, Json(status)).into_response();
                }
            };
            let failed = json!({"type": "Terminating", "status": "True", "reason": "InstanceDeletionFailed",
                "message": "could not list instances: storage is (re)initializing"});
            let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "pets.zoo.example.com", "uid": "first", "resourceVersion": version},
                "status": {"conditions": [failed]}});
            Json(definition).into_response()
        }
    }

    async fn answer(State(server): State<Arc<Mutex<Forgetful>>>, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("a body");
        server.lock().expect("nobody panics").answer(&head.method, &body)
    }

    #[tokio::test]
    async fn a_deletion_that_kube_apiserver_forgot_is_carried_through_by_one_write_for_each_failure() {
        let server = Arc::new(Mutex::new(Forgetful::default()));
        let router: Router = Router::new().fallback(answer).with_state(server.clone());
        let definitions = ApiResource {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            plural: "customresourcedefinitions".to_owned(),
        };
        let definitions = Api::all_with(Client::new(router, "default"), &definitions);
        delete(&definitions, "pets.zoo.example.com").await;
        assert_eq!(server.lock().expect("nobody panics").written, ["1", "3"]);
    }
}
