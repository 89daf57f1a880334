//! Which cluster it is. Two clusters give the same versions to different objects, so nothing else tells them apart.

use k8s_openapi::api::core::v1::Namespace;
use kindex_kube_api::status::Outcome;
use kindex_model::object::Uid;
use kube::{Api, Client};

use super::ClusterError;
use super::classify::outcome;
use super::kube_cluster::KubeCluster;

/// The namespace whose uid tells one cluster from another: each has it from its beginning, and keeps it when it is
/// restored from a backup of its own.
const OF_THE_CLUSTER: &str = "kube-system";

/// What a cluster says of which one it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The uid of its namespace `kube-system`.
    Known(Uid),
    /// It has no such namespace, as for a moment after it was made.
    Absent,
    /// Whoever asks may not know it.
    Hidden,
}

/// Which cluster the server of this client belongs to.
///
/// # Errors
/// Where it does not answer: an outage says nothing of the namespace, nor does the page of a proxy.
pub async fn identify(client: &Client) -> kube::Result<Identity> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get(OF_THE_CLUSTER).await {
        Ok(found) => Ok(match found.metadata.uid {
            Some(uid) => Identity::Known(Uid::from(uid.as_str())),
            None => Identity::Absent,
        }),
        Err(error) => match outcome(&error) {
            Some(Outcome::Absent) => Ok(Identity::Absent),
            Some(Outcome::Forbidden) => Ok(Identity::Hidden),
            _ => Err(error),
        },
    }
}

impl KubeCluster {
    /// Which cluster it is.
    ///
    /// # Errors
    /// Where it does not answer.
    pub async fn identity(&self) -> Result<Identity, ClusterError> {
        self.answer(identify(&self.client)).await
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    async fn identity(code: u16, answer: Value) -> Result<Identity, ClusterError> {
        let service = tower::service_fn(move |request: Request<Body>| {
            assert_eq!(request.uri().path(), "/api/v1/namespaces/kube-system");
            let answer = answer.to_string().into_bytes();
            async move {
                let response = Response::builder().status(code).body(Body::from(answer));
                Ok::<_, Infallible>(response.expect("a response"))
            }
        });
        KubeCluster::from(Client::new(service, "default")).identity().await
    }

    fn failure(code: u16, reason: &str) -> Value {
        json!({"kind": "Status", "status": "Failure", "message": "m", "reason": reason, "code": code})
    }

    /// As if a cluster that does not answer were one without an identity: whatever compares it would be content.
    #[tokio::test]
    async fn a_cluster_is_known_by_a_uid_and_an_outage_is_no_answer() {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u"}});
        let known = Identity::Known(Uid::from("u"));
        assert_eq!(identity(200, namespace).await, Ok(known));
        let mut absent = failure(404, "NotFound");
        absent["details"] = json!({"name": "kube-system", "kind": "namespaces"});
        assert_eq!(identity(404, absent).await, Ok(Identity::Absent));
        assert_eq!(identity(403, failure(403, "Forbidden")).await, Ok(Identity::Hidden));
        for silence in [
            identity(503, failure(503, "ServiceUnavailable")).await,
            identity(404, failure(404, "NotFound")).await,
            identity(404, json!("404 page not found")).await,
        ] {
            assert!(silence.is_err_and(|error| error.is_silence()));
        }
    }
}
