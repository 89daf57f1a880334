//! How the objects of a definition become those of its other versions: in this process, where the program has the
//! versions itself, by the definition's webhook, or by their `apiVersion` alone.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::review;
use super::webhook::{self, Webhook};

/// What answers in this process where a definition names a conversion webhook.
pub trait Convert: Send + Sync {
    /// Whether it has the versions of this kind.
    fn knows(&self, group: &str, kind: &str) -> bool;

    /// The object of that kind, a JSON text, in `version`.
    ///
    /// # Errors
    /// Why it has no form in that version.
    fn convert(&self, group: &str, kind: &str, text: &str, version: &str) -> Result<String, String>;
}

/// Who converts.
#[derive(Clone)]
enum Converter {
    Process(Arc<dyn Convert>),
    Webhook(Arc<Webhook>),
    /// A webhook that cannot be asked, and why.
    Nobody(String),
}

/// The conversion of one kind's objects.
#[derive(Clone)]
pub(crate) struct Conversion {
    converter: Converter,
    group: String,
    kind: String,
}

impl Conversion {
    /// The conversion of a definition's objects, where it wants a webhook: by `converter`, if that has its versions.
    pub(crate) fn of(definition: &Value, converter: Option<&Arc<dyn Convert>>) -> Option<Self> {
        let spec = &definition["spec"];
        if spec["conversion"]["strategy"] != "Webhook" {
            return None;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
        let converter = match converter.filter(|converter| converter.knows(&group, &kind)) {
            Some(converter) => Converter::Process(Arc::clone(converter)),
            None => match Webhook::of(&spec["conversion"]["webhook"]) {
                Ok(webhook) => Converter::Webhook(Arc::new(webhook)),
                Err(why) => Converter::Nobody(why),
            },
        };
        Some(Self { converter, group, kind })
    }

    /// The object in `api_version`, which is `version` of its group.
    ///
    /// # Errors
    /// Why it has no form in that, in the words of kube-apiserver.
    pub(super) async fn convert(&self, object: &Value, version: &str, api_version: &str) -> Result<Value, String> {
        match &self.converter {
            Converter::Process(converter) => converter
                .convert(&self.group, &self.kind, &object.to_string(), version)
                .and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()))
                .and_then(|converted| review::with_metadata(object, converted))
                .map_err(|why| webhook::failed(object, &why)),
            // On the heap while it lasts: a watch at rest has no room for it.
            Converter::Webhook(webhook) => Box::pin(webhook.convert(object, api_version)).await,
            Converter::Nobody(why) => Err(webhook::failed(object, why)),
        }
    }
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Conversion({}.{})", self.kind, self.group)
    }
}
