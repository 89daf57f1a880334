//! The simulated cluster behind the interface that ingesters use, and the faults of single requests to it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kindex_kube_client::{
    ClusterCause, ClusterError, ObjectName, Page, ReadApi, SelectApi, Selection, Target, WriteApi,
};
use kindex_model::kind::Kind;
use kindex_model::object::Object;

use super::cluster::SimCluster;

/// How the next request to the cluster fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFailure {
    /// It is not carried out and not answered.
    Silence,
    /// It is carried out but not answered.
    LostAnswer,
    /// It is throttled (429).
    Throttled,
    /// The server fails (500).
    ServerError,
}

/// `Retry-After` of a throttled request.
pub(crate) const RETRY_AFTER_S: u32 = 1;

/// A simulated cluster whose requests can fail.
#[derive(Debug, Default)]
pub struct SimApi {
    cluster: Mutex<SimCluster>,
    failing: Mutex<Option<RequestFailure>>,
}

impl SimApi {
    /// The cluster itself.
    pub fn cluster(&self) -> MutexGuard<'_, SimCluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how the next request fails.
    pub fn set_failure(&self, failing: Option<RequestFailure>) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = failing;
    }

    pub(crate) fn take_failure(&self) -> Option<RequestFailure> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn request<T>(&self, act: impl FnOnce(&mut SimCluster) -> Result<T, ClusterError>) -> Result<T, ClusterError> {
        match self.take_failure() {
            None => act(&mut self.cluster()),
            Some(RequestFailure::LostAnswer) => {
                let _lost = act(&mut self.cluster());
                Err(failure(RequestFailure::LostAnswer))
            }
            Some(failing) => Err(failure(failing)),
        }
    }
}

/// The error that the sender of a failed request receives.
pub(crate) fn failure(failing: RequestFailure) -> ClusterError {
    let (cause, retry_after) = match failing {
        RequestFailure::Silence | RequestFailure::LostAnswer => (ClusterCause::Timeout, None),
        RequestFailure::Throttled => (
            ClusterCause::TooManyRequests,
            Some(Duration::from_secs(RETRY_AFTER_S.into())),
        ),
        RequestFailure::ServerError => (ClusterCause::ServerError, None),
    };
    ClusterError::Retryable {
        cause,
        retry_after,
        message: "simulated".to_owned(),
    }
}

#[async_trait]
impl ReadApi for SimApi {
    async fn list(&self, _: &Kind, limit: u32, continue_token: Option<&str>) -> Result<Page, ClusterError> {
        self.request(|cluster| cluster.list(limit as usize, continue_token))
    }

    async fn get(&self, _: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        self.request(|cluster| Ok(cluster.get(&name.name)))
    }
}

#[async_trait]
impl SelectApi for SimApi {
    async fn select(&self, _: &Kind, selection: Selection<'_>) -> Result<Option<Page>, ClusterError> {
        let (_, name) = selection.fields.split_once('=').expect("one field");
        self.request(|cluster| Ok(Some(cluster.owned_by(name))))
    }
}

#[async_trait]
impl WriteApi for SimApi {
    async fn delete(&self, _: &Kind, target: &Target) -> Result<Option<Object>, ClusterError> {
        self.request(|cluster| cluster.delete_if(target, cluster.now))
    }

    async fn set_finalizers(&self, _: &Kind, target: &Target, finalizers: &[String]) -> Result<Object, ClusterError> {
        self.request(|cluster| cluster.set_finalizers(target, finalizers))
    }
}
