//! The API of some custom resources without a cluster: what they are is fixed, and their objects are kept elsewhere.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use kindex_kube_api::meta;
use kindex_serve::watches::Watches;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::access::{Token, Tokens};
use crate::api::{Api, Clock};
use crate::definition::{self, Claims};
use crate::in_process::InProcess;
use crate::limits::Limits;
use crate::namespaces::Namespaces;
use crate::registry::Registry;
use crate::resource::Convert;
use crate::server::Host;
use crate::store::{FollowedBackend, StorageBackend, Store};

/// A definition that cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("the definition {name} cannot be served: {why}")]
pub struct NotServed {
    /// Its name.
    pub name: String,
    /// What is wrong with it, all of it.
    pub why: String,
}

/// How the resources are served.
pub struct FixedOptions {
    /// The time of day.
    pub clock: Clock,
    /// Limits of the server.
    pub limits: Limits,
    /// What answers for conversion webhooks; without it, versions differ in `apiVersion` alone.
    pub converter: Option<Arc<dyn Convert>>,
}

impl Default for FixedOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(Timestamp::now),
            limits: Limits::default(),
            converter: None,
        }
    }
}

/// The API of some custom resources, over a [`StorageBackend`].
///
/// # Guarantees
/// Requests are answered as a cluster answers them. A namespace is a part of a name: it need not exist, and nothing
/// goes with it. Nobody collects dependents, so the propagation of a deletion does not count.
pub struct FixedApi {
    api: Api,
    limits: Limits,
}

impl FixedApi {
    /// Serves these CustomResourceDefinitions, each as its manifest has it.
    ///
    /// # Errors
    /// The first definition that no cluster would take.
    pub async fn open(
        definitions: Vec<Value>,
        backend: Arc<dyn StorageBackend>,
        options: FixedOptions,
    ) -> Result<Self, NotServed> {
        let registry = Registry::empty(options.converter);
        let now = meta::time((options.clock)());
        for mut definition in definitions {
            definition::apply_defaults(&mut definition);
            let problems = definition::problems(&definition, None);
            let name = meta::name(&definition).to_owned();
            if !problems.is_empty() {
                let problems = problems.iter();
                let problems: Vec<String> = problems.map(|it| format!("{}: {}", it.field, it.message)).collect();
                return Err(NotServed {
                    name,
                    why: problems.join("; "),
                });
            }
            definition::settle(&mut definition, &Claims::default(), &now);
            // An object may be from before a change of its schema, whatever its version is.
            registry.install(&definition, u64::MAX);
        }
        let shutdown = CancellationToken::new();
        let store = Store::Elsewhere(FollowedBackend::start(backend, shutdown.clone()).await);
        Ok(Self {
            api: Api {
                store,
                is_cluster: false,
                registry: Arc::new(registry),
                namespaces: Arc::new(Namespaces::default()),
                object_locks: Arc::default(),
                tokens: Tokens {
                    callers: Token::random(),
                    ingester: Token::random(),
                },
                clock: options.clock,
                watches: Watches::new(options.limits.watches),
                shutdown,
            },
            limits: options.limits,
        })
    }

    /// The way in, for a server that others find at this address. Works until the last copy of it and this are dropped.
    pub fn in_process(&self, address: SocketAddr) -> InProcess {
        InProcess::new(Host::new(self.api.clone(), &self.limits, address))
    }

    /// Ends all watches, and stops following.
    pub fn stop(&self) {
        self.api.shutdown.cancel();
    }
}
