//! Changes of an object in the version that somebody has seen. Does not know what is changed.

use kindex_model::kind::Kind;
use kindex_model::object::Object;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::kube_cluster::{KubeCluster, built, of_object};
use super::wire::parse_object;
use super::{ClusterError, Target};

impl KubeCluster {
    /// Merges changes into an object, or into a subresource of it, on the condition that uid and version are these.
    /// Gives back the object as it is afterwards.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] where it is another one by now, [`ClusterError::NotFound`] where there is no such
    /// object or no such subresource.
    pub async fn patch(
        &self,
        kind: &Kind,
        target: &Target,
        subresource: Option<&str>,
        mut changes: Value,
    ) -> Result<Object, ClusterError> {
        changes["metadata"]["uid"] = json!(target.uid.to_string());
        changes["metadata"]["resourceVersion"] = json!(target.resource_version.to_string());
        let (name, params, patch) = (&target.name.name, PatchParams::default(), Patch::Merge(&changes));
        let objects = of_object(kind, &target.name);
        let request = match subresource {
            None => objects.patch(name, &params, &patch),
            Some(subresource) => objects.patch_subresource(subresource, name, &params, &patch),
        };
        let asked = self.client.request_text(built(request)?);
        let answer = self.answer_about(kind, Some(&target.name), asked).await?;
        parse_object(&answer)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use http::{Method, Request, Response};
    use http_body_util::BodyExt as _;
    use kindex_model::kind::Scope;
    use kindex_model::object::{ResourceVersion, Uid};
    use kube::Client;
    use kube::client::Body;

    use super::*;
    use crate::ObjectName;

    static WIDGETS: Kind = Kind {
        name: "Widget",
        group: "g.example",
        version: "v1",
        plural: "widgets",
        scope: Scope::Namespaced,
        ..Kind::EMPTY
    };
    /// With numbers that only a text can hold.
    const WRITTEN: &str =
        r#"{"metadata":{"uid":"u","name":"a","namespace":"n","resourceVersion":"8"},"spec":{"n":1e400,  "z":0}}"#;

    type Requests = Arc<Mutex<Vec<(Method, String, Value)>>>;

    /// A cluster that answers everything with this, and the requests that it got.
    fn cluster(code: u16, answer: &str) -> (KubeCluster, Requests) {
        let requests = Requests::default();
        let (seen, answer) = (requests.clone(), answer.as_bytes().to_vec());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (seen, answer) = (seen.clone(), answer.clone());
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.expect("a body").to_bytes();
                let body = serde_json::from_slice(&body).expect("JSON");
                seen.lock()
                    .expect("no panic")
                    .push((head.method, head.uri.path().to_owned(), body));
                let response = Response::builder().status(code).body(Body::from(answer));
                Ok::<_, Infallible>(response.expect("an answer"))
            }
        });
        (KubeCluster::from(Client::new(service, "default")), requests)
    }

    fn target() -> Target {
        Target {
            name: ObjectName {
                namespace: "n".to_owned(),
                name: "a".to_owned(),
            },
            uid: Uid::from("u"),
            resource_version: ResourceVersion(7),
        }
    }

    /// As if a change could meet another object, or another version, than the one that somebody has seen.
    #[tokio::test]
    async fn a_change_names_the_object_and_the_version_that_it_depends_on() {
        let path = "/apis/g.example/v1/namespaces/n/widgets/a";
        for (subresource, path) in [(None, path.to_owned()), (Some("status"), format!("{path}/status"))] {
            let (cluster, requests) = cluster(200, WRITTEN);
            let changes = json!({"metadata": {"annotations": {"x": "y"}}});
            let written = cluster.patch(&WIDGETS, &target(), subresource, changes).await;
            assert_eq!(written.expect("it is written").text(), WRITTEN, "to the byte");
            let body = json!({"metadata": {"annotations": {"x": "y"}, "uid": "u", "resourceVersion": "7"}});
            assert_eq!(*requests.lock().expect("no panic"), [(Method::PATCH, path, body)]);
        }
    }

    /// As if a write that was refused had an unknown end.
    #[tokio::test]
    async fn a_change_that_is_refused_says_why() {
        for (code, expected) in [
            (404, ClusterError::NotFound("m".to_owned())),
            (409, ClusterError::Conflict("m".to_owned())),
            (422, ClusterError::Refused("m".to_owned())),
        ] {
            let status = json!({"kind": "Status", "status": "Failure", "code": code, "message": "m",
                "details": {"name": "a", "kind": "widgets"}});
            let (cluster, _) = cluster(code, &status.to_string());
            let written = cluster.patch(&WIDGETS, &target(), None, json!({})).await;
            assert_eq!(written.expect_err("it is refused"), expected);
        }
    }
}
