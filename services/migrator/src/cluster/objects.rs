//! The objects of one resource: their metadata in pages, and patches that state nothing but the version they were
//! listed with. Such a patch makes an API server store the object anew where its bytes are those of another version.

use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{DynamicObject, ObjectList, PartialObjectMeta, Request, Resource as _};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio::time::sleep;

use super::conduct::Conduct;
use super::discover::Served;
use super::request::{Answer, send};
use crate::run::Outcome;
use crate::run::answer::{Listed, Patched, Reply, Written, listed, patched};
use crate::run::managers::{Declared, cleaned};

/// The metadata of an object.
pub(super) type Metadata = PartialObjectMeta<DynamicObject>;

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
    pub(super) conduct: Conduct,
}

impl Objects {
    /// Lists one page, however often it has to be asked for.
    pub(super) async fn page(&self, token: Option<String>, limit: u32) -> Page {
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
                    tracing::warn!(resource, ?reply, ?pause, "A page is listed again");
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
        self.conduct.figures.written(&written);
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
        let version = object.resource_version();
        let mut patch = json!({"metadata": {"uid": object.uid(), "resourceVersion": version}});
        if let Some(declared) = &self.declared
            && let Some(entries) = cleaned(object.managed_fields(), declared)
        {
            patch["metadata"]["managedFields"] = json!(entries);
        }
        let params = PatchParams {
            dry_run,
            ..PatchParams::default()
        };
        let namespace = object.namespace();
        let name = object.name_any();
        for attempt in 1.. {
            let request = self.request(namespace.as_deref());
            let Ok(request) = request.patch_metadata(&name, &params, &Patch::Merge(&patch)) else {
                let why = "the patch cannot be asked for".to_owned();
                return Written::Refused { why };
            };
            self.conduct.rate.wait().await;
            let Answer { reply, body, .. } = send::<Metadata>(&self.client, request).await;
            let changed = body.is_some_and(|written| written.resource_version() != version);
            match patched(&reply, changed, attempt) {
                Patched::Ended(written) => return written,
                Patched::Again(pause) => {
                    if let Reply::Refused { message, .. } = &reply {
                        let resource = &self.served.resource.plural;
                        tracing::debug!(resource, name, message, ?pause, "An object is patched again");
                    }
                    sleep(pause).await;
                }
            }
        }
        unreachable!("attempts do not end")
    }

    fn request(&self, namespace: Option<&str>) -> Request {
        Request::new(DynamicObject::url_path(&self.served.resource, namespace))
    }
}
