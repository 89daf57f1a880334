//! The kind Trial of `fixtures/traps`, in several versions, and what converts its objects: in process, as in
//! `kindex up`, and by a webhook, as in a cluster.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kindex_cluster::Convert;
use kindex_model::kind::Registry;
use kindex_serve::listen::Tls;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::kinds::trial::KIND;
pub use crate::registry::PLATFORM;

/// Trials alone.
pub const REGISTRY: Registry = Registry {
    platform: PLATFORM,
    kinds: &[&KIND],
    schemas: &[
        ("mysql", include_str!("../fixtures/traps/schema/mysql_schema.sql")),
        ("sqlite", include_str!("../fixtures/traps/schema/sqlite_schema.sql")),
    ],
    declared: crate::registry::DECLARED,
    ..Registry::EMPTY
};

const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/tls/first.crt");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/tls/first.key");

/// As `kindex up` answers.
pub struct Trials;

impl Convert for Trials {
    fn knows(&self, group: &str, kind: &str) -> bool {
        (group, kind) == (KIND.group, KIND.name)
    }

    fn convert(&self, _: &str, _: &str, text: &str, version: &str) -> Result<String, String> {
        kindex_convert::convert(&PLATFORM, &KIND, text, version).map_err(|error| error.to_string())
    }
}

/// Serves the webhook until `stop`; the `clientConfig` by which a definition names it.
///
/// # Panics
/// Where it cannot be served.
pub async fn webhook(stop: CancellationToken) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let address = listener.local_addr().expect("bound");
    let tls = Tls::read(Path::new(CERTIFICATE), Path::new(KEY), None).expect("a certificate with its key");
    tokio::spawn(kindex_migrator::serve(listener, Some(tls), REGISTRY, stop));
    let authority = std::fs::read(CERTIFICATE).expect("the certificate is readable");
    json!({"url": format!("https://{address}/convert"), "caBundle": STANDARD.encode(authority)})
}
