//! The writes with which objects come back to a cluster. Texts go out as they were stored,
//! to the byte, but for the metadata. Knows not why anything comes back.

use async_trait::async_trait;
use kindex_model::kind::Kind;
use kindex_model::object::{Object, Uid};
use kube::api::{Patch, PatchParams, PostParams};
use serde::Serialize;
use serde_json::value::RawValue;

use super::kube_cluster::{KubeCluster, built, of_object};
use super::wire::parse_object;
use super::{ClusterError, ObjectName};

#[derive(Debug, Serialize)]
struct StatusPatch<'a> {
    metadata: Identity<'a>,
    status: &'a RawValue,
}

#[derive(Debug, Serialize)]
struct Identity<'a> {
    uid: &'a str,
}

/// What `kindex restore` asks of a Kubernetes API beside what the ingester asks of it.
#[async_trait]
pub trait CreateApi: Send + Sync {
    /// Creates an object from its JSON text.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] where the name is taken.
    async fn create(&self, kind: &Kind, name: &ObjectName, text: &str) -> Result<Object, ClusterError>;

    /// Lets the cluster check all that it would check, and creates nothing.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    async fn rehearse(&self, kind: &Kind, name: &ObjectName, text: &str) -> Result<(), ClusterError>;

    /// Replaces the status of this object through its subresource.
    ///
    /// # Errors
    /// [`ClusterError::Conflict`] where another object has the name by now,
    /// [`ClusterError::NotFound`] where there is no such object or no such subresource.
    async fn set_status(
        &self,
        kind: &Kind,
        name: &ObjectName,
        uid: &Uid,
        status: &RawValue,
    ) -> Result<Object, ClusterError>;
}

#[async_trait]
impl CreateApi for KubeCluster {
    async fn create(&self, kind: &Kind, name: &ObjectName, text: &str) -> Result<Object, ClusterError> {
        parse_object(&self.post(kind, name, text, false).await?)
    }

    async fn rehearse(&self, kind: &Kind, name: &ObjectName, text: &str) -> Result<(), ClusterError> {
        // The answer is an object without a version: no object that could be stored.
        self.post(kind, name, text, true).await.map(drop)
    }

    async fn set_status(
        &self,
        kind: &Kind,
        name: &ObjectName,
        uid: &Uid,
        status: &RawValue,
    ) -> Result<Object, ClusterError> {
        let patch = Patch::Merge(StatusPatch {
            metadata: Identity { uid: &uid.0 },
            status,
        });
        let params = PatchParams::default();
        let request = built(of_object(kind, name).patch_subresource("status", &name.name, &params, &patch))?;
        let asked = self.client.request_text(request);
        let answer = self.answer_about(kind, Some(name), asked).await?;
        parse_object(&answer)
    }
}

impl KubeCluster {
    async fn post(&self, kind: &Kind, name: &ObjectName, text: &str, dry_run: bool) -> Result<String, ClusterError> {
        let params = PostParams {
            dry_run,
            ..PostParams::default()
        };
        let request = built(of_object(kind, name).create(&params, text.as_bytes().to_vec()))?;
        let asked = self.client.request_text(request);
        self.answer_about(kind, None, asked).await
    }
}
