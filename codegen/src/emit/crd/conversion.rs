//! How a cluster converts objects between the versions of a kind: by a change of `apiVersion` where that is all that
//! differs, and else by asking Kindex.

use serde::Serialize;

use crate::model::Kind;

/// The Service that answers, in the namespace that the chart is installed in unless said otherwise.
const SERVICE: Service = Service {
    name: "kindex-migrator",
    namespace: "kindex",
    path: "/convert",
};

/// `None` for a kind of one version.
pub(super) fn of(kind: &Kind) -> Option<Conversion> {
    if kind.versions.is_empty() {
        return None;
    }
    let webhook = Webhook {
        client_config: ClientConfig { service: SERVICE },
        conversion_review_versions: ["v1"],
    };
    Some(match kind.is_converted() {
        true => Conversion {
            strategy: "Webhook",
            webhook: Some(webhook),
        },
        false => Conversion {
            strategy: "None",
            webhook: None,
        },
    })
}

#[derive(Serialize)]
pub(super) struct Conversion {
    strategy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<Webhook>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    client_config: ClientConfig,
    conversion_review_versions: [&'static str; 1],
}

#[derive(Serialize)]
struct ClientConfig {
    service: Service,
}

#[derive(Serialize)]
struct Service {
    name: &'static str,
    namespace: &'static str,
    path: &'static str,
}
