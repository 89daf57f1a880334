//! The objects of one resource: their metadata in pages, and patches that state nothing but the version they were
//! listed with. Such a patch makes an API server store the object anew where its bytes are those of another version.

use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, ObjectList, PartialObjectMeta, Request, Resource as _};
use kube::{Client, ResourceExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::discover::Served;
use super::request::{Answer, send};
use super::settings::MigrationSettings;
use crate::run::Outcome;
use crate::run::answer::{Listed, Patched, Reply, Written, listed, patched};
use crate::run::managers::{Declared, cleaned};

/// The metadata of an object.
pub(super) type Metadata = PartialObjectMeta<DynamicObject>;

/// What is read of an object that was written.
#[derive(Deserialize)]
struct Stored {
    metadata: StoredMetadata,
}

#[derive(Deserialize)]
struct StoredMetadata {
    #[serde(rename = "resourceVersion")]
    resource_version: Option<String>,
}

/// Who applies nothing, and so is not noted as a manager of fields.
const MANAGER: &str = "kindex-migrator";

/// How a page was listed.
pub(super) enum Page {
    /// It is there.
    Of(ObjectList<Metadata>),
    /// The list goes on with another token.
    GoOn(String),
    /// The list begins again.
    StartOver,
    /// There is none.
    Impossible(String),
}

/// The objects of a resource, and how they are written.
#[derive(Clone)]
pub(super) struct Objects {
    /// The API server.
    pub(super) client: Client,
    /// The resource.
    pub(super) served: Served,
    /// The versions of its definition, where it has one.
    pub(super) declared: Option<Declared>,
    /// How fast.
    pub(super) settings: MigrationSettings,
}

impl Objects {
    /// Lists one page, however often it has to be asked for.
    pub(super) async fn page(&self, token: Option<String>) -> Page {
        self.page_of(token, self.settings.pace.page).await
    }

    /// Lists the first objects.
    pub(super) async fn first(&self, limit: u32) -> Page {
        self.page_of(None, limit).await
    }

    async fn page_of(&self, token: Option<String>, limit: u32) -> Page {
        let mut params = ListParams::default().limit(limit);
        params.continue_token = token;
        for attempt in 1.. {
            let request = self.request(None).list_metadata(&params);
            let Ok(request) = request else {
                return Page::Impossible("the list cannot be asked for".to_owned());
            };
            let Answer { reply, token, body } = send(&self.client, request).await;
            match (listed(&reply, token.as_deref(), attempt), body) {
                (Listed::Page, Some(page)) => return Page::Of(page),
                (Listed::Page, None) => return Page::Impossible("the list has no body".to_owned()),
                (Listed::GoOn { token }, _) => return Page::GoOn(token),
                (Listed::StartOver, _) => return Page::StartOver,
                (Listed::Again(pause), _) => {
                    let resource = &self.served.resource.plural;
                    let seconds = pause.as_secs_f64();
                    tracing::warn!(resource, %reply, seconds, "A page is listed again after a pause");
                    sleep(pause).await;
                }
                (Listed::Impossible { why }, _) => return Page::Impossible(why),
            }
        }
        unreachable!("attempts do not end")
    }

    /// Patches one object with its own version as the condition, until it is written or cannot be.
    pub(super) async fn patch(&self, object: Metadata) -> Outcome {
        let written = self.write(&object, false).await;
        self.settings.metrics.written(&written);
        let object = match object.namespace() {
            Some(namespace) => format!("{namespace}/{}", object.name_any()),
            None => object.name_any(),
        };
        Outcome { object, written }
    }

    /// The same, without storing anything.
    pub(super) async fn try_patch(&self, object: &Metadata) -> Written {
        self.write(object, true).await
    }

    async fn write(&self, object: &Metadata, dry_run: bool) -> Written {
        let (version, namespace, name) = (object.resource_version(), object.namespace(), object.name_any());
        let (applied, merged) = self.patches(object);
        let mut patch = applied.as_ref().unwrap_or(&merged);
        for attempt in 1.. {
            let request = self.request(namespace.as_deref());
            let Ok(request) = request.patch_metadata(&name, &params(patch, dry_run), patch) else {
                let why = "the patch cannot be asked for".to_owned();
                return Written::Refused { why };
            };
            self.settings.rate.wait().await;
            let Answer { reply, body, .. } = send::<Stored>(&self.client, request).await;
            let changed = body.is_some_and(|stored| stored.metadata.resource_version != version);
            match patched(&reply, changed, attempt) {
                Patched::Ended(written @ (Written::Rewritten | Written::Unchanged)) => return written,
                // Not every resource can be applied to: a merge patch says what is the matter with the object.
                Patched::Ended(_) if matches!(patch, Patch::Apply(_)) => patch = &merged,
                Patched::Ended(written) => return written,
                Patched::Again(pause) => {
                    if let Reply::Refused { message, .. } = &reply {
                        let resource = &self.served.resource.plural;
                        let seconds = pause.as_secs_f64();
                        tracing::debug!(
                            resource,
                            name,
                            message,
                            seconds,
                            "An object is patched again after a pause"
                        );
                    }
                    sleep(pause).await;
                }
            }
        }
        unreachable!("attempts do not end")
    }

    /// An empty server-side apply, and the merge patch that does the same. To kube-apiserver the apply is less work: it
    /// does not encode and decode the object to patch its text. It cannot clean managers, and where an object has none
    /// it would add one; none is given then.
    fn patches(&self, object: &Metadata) -> (Option<Patch<Value>>, Patch<Value>) {
        let metadata = json!({"uid": object.uid(), "resourceVersion": object.resource_version()});
        let mut merged = json!({"metadata": metadata});
        let declared = self.declared.as_ref();
        match declared.and_then(|declared| cleaned(object.managed_fields(), declared)) {
            Some(entries) => {
                merged["metadata"]["managedFields"] = json!(entries);
                (None, Patch::Merge(merged))
            }
            None if object.managed_fields().is_empty() => (None, Patch::Merge(merged)),
            None => {
                let ApiResource { api_version, kind, .. } = &self.served.resource;
                let applied = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
                (Some(Patch::Apply(applied)), Patch::Merge(merged))
            }
        }
    }

    fn request(&self, namespace: Option<&str>) -> Request {
        Request::new(DynamicObject::url_path(&self.served.resource, namespace))
    }
}

/// Nothing is stated that could be validated.
fn params<T: serde::Serialize>(patch: &Patch<T>, dry_run: bool) -> PatchParams {
    let params = match patch {
        Patch::Apply(_) => PatchParams::apply(MANAGER).force(),
        _ => PatchParams::default(),
    };
    PatchParams {
        dry_run,
        ..params.validation_ignore()
    }
}
