//! The Secret that the replicas share: a `kubernetes.io/tls` one with the authority beside the certificate.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kindex_kube_client::{look_up, outcome};
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client};

use super::material::Material;

/// `type` of the Secret.
const TYPE: &str = "kubernetes.io/tls";
const AUTHORITIES: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// Which Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for SecretName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for SecretName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => Ok(Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err("a Secret is named NAMESPACE/NAME".to_owned()),
        }
    }
}

/// A Secret as it was read, and what it holds.
pub(super) struct Found {
    secret: Secret,
    /// `None` where a part is absent: not one that Kindex made.
    pub(super) material: Option<Material>,
}

/// The Secret, if there is one.
pub(super) async fn read(client: &Client, name: &SecretName) -> Result<Option<Found>, kube::Error> {
    let found = look_up(&api(client, name), &name.name).await?;
    Ok(found.map(|secret| Found {
        material: material(&secret),
        secret,
    }))
}

/// Creates the Secret, or replaces the one that was found, if that is still the same; whether it could.
pub(super) async fn write(
    client: &Client,
    name: &SecretName,
    found: Option<Found>,
    material: &Material,
) -> Result<bool, kube::Error> {
    let secrets = api(client, name);
    let parameters = PostParams::default();
    // A Secret that cannot be created has no namespace to be in.
    let existed = found.is_some();
    let written = match found {
        None => {
            let secret = Secret {
                metadata: ObjectMeta {
                    name: Some(name.name.clone()),
                    labels: Some(BTreeMap::from([(
                        "app.kubernetes.io/managed-by".to_owned(),
                        "kindex".to_owned(),
                    )])),
                    ..ObjectMeta::default()
                },
                type_: Some(TYPE.to_owned()),
                data: Some(data(material)),
                ..Secret::default()
            };
            secrets.create(&parameters, &secret).await
        }
        Some(Found { secret, .. }) => {
            let secret = Secret {
                data: Some(data(material)),
                ..secret
            };
            secrets.replace(&name.name, &parameters, &secret).await
        }
    };
    match written {
        Ok(_) => Ok(true),
        Err(error)
            if outcome(&error).is_some_and(|outcome| outcome.is_conflict() || (outcome.is_not_found() && existed)) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn api(client: &Client, name: &SecretName) -> Api<Secret> {
    Api::namespaced(client.clone(), &name.namespace)
}

fn data(material: &Material) -> BTreeMap<String, ByteString> {
    let Material {
        authorities,
        authority_key,
        certificate,
        key,
    } = material.clone();
    [
        (AUTHORITIES, authorities),
        (AUTHORITY_KEY, authority_key),
        (CERTIFICATE, certificate),
        (KEY, key),
    ]
    .map(|(name, text)| (name.to_owned(), ByteString(text.into_bytes())))
    .into()
}

fn material(secret: &Secret) -> Option<Material> {
    let text = |name: &str| {
        let bytes = secret.data.as_ref()?.get(name)?;
        String::from_utf8(bytes.0.clone()).ok()
    };
    Some(Material {
        authorities: text(AUTHORITIES)?,
        authority_key: text(AUTHORITY_KEY)?,
        certificate: text(CERTIFICATE)?,
        key: text(KEY)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_named_with_its_namespace() {
        let name: SecretName = "kindex/webhook".parse().expect("a name");
        assert_eq!(name.to_string(), "kindex/webhook");
        for none in ["webhook", "/webhook", "kindex/", "a/b/c"] {
            none.parse::<SecretName>().expect_err(none);
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let made = Material {
            authorities: "a".to_owned(),
            authority_key: "b".to_owned(),
            certificate: "c".to_owned(),
            key: "d".to_owned(),
        };
        let mut secret = Secret {
            data: Some(data(&made)),
            ..Secret::default()
        };
        assert!(material(&secret) == Some(made));
        let data = secret.data.as_mut().expect("data");
        data.remove(AUTHORITY_KEY);
        assert!(material(&secret).is_none(), "not one that Kindex made");
    }
}
