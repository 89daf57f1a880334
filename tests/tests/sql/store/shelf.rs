//! A cluster that lists and gets what a test puts into it, and does nothing by itself:
//! for what is compared with a store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use kindex_kube_client::{ClusterError, CreateApi, ObjectName, Page, ReadApi};
use kindex_model::kind::Kind;
use kindex_model::object::{Object, ResourceVersion, Uid};
use serde_json::Value;
use serde_json::value::RawValue;

use super::widget::Widget;

/// Something that happens to a shelf.
type Act = Box<dyn FnOnce(&Shelf) + Send>;

/// Objects by name. A list shows what was there when its first page was asked for.
#[derive(Default)]
pub(crate) struct Shelf {
    objects: Mutex<BTreeMap<ObjectName, Object>>,
    lists: Mutex<Vec<Vec<Object>>>,
    /// How many pages are refused as expired before one is given.
    pub(crate) expired: Mutex<u32>,
    /// After how many more pages the list is refused for good.
    pub(crate) pages_left: Mutex<Option<u32>>,
    gets: Mutex<Vec<Act>>,
    /// How many versions it has given to objects that were created on it: it begins with 1, like a
    /// cluster that was built anew.
    versions: Mutex<u64>,
    /// How often a new object is refused before one is taken.
    pub(crate) creations_refused: Mutex<u32>,
    /// How often a status is refused before one is taken.
    pub(crate) statuses_refused: Mutex<u32>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no test panics with a shelf in hand")
}

impl Shelf {
    pub(crate) fn put(&self, widget: &Widget) {
        self.put_text(&widget.text());
    }

    pub(crate) fn put_text(&self, text: &str) {
        let object = Object::parse_str(text).expect("the test's object is one");
        locked(&self.objects).insert(ObjectName::of(&object), object);
    }

    pub(crate) fn take(&self, name: &str) {
        locked(&self.objects).retain(|key, _| key.name != name);
    }

    /// The object of this name in the namespace of all widgets, as JSON.
    pub(crate) fn shown(&self, name: &str) -> Option<Value> {
        let name = ObjectName {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        let text = locked(&self.objects).get(&name)?.text().to_owned();
        Some(serde_json::from_str(&text).expect("an object is JSON"))
    }

    /// Puts what a client sent, in a version of its own.
    fn take_in(&self, name: &ObjectName, mut sent: Value) -> Object {
        let mut versions = locked(&self.versions);
        *versions += 1;
        sent["metadata"]["resourceVersion"] = versions.to_string().into();
        let object = Object::parse_str(&sent.to_string()).expect("an object");
        locked(&self.objects).insert(name.clone(), object.clone());
        object
    }

    /// Happens right before the next object is got.
    pub(crate) fn before_get(&self, act: impl FnOnce(&Shelf) + Send + 'static) {
        locked(&self.gets).push(Box::new(act));
    }
}

#[async_trait]
impl ReadApi for Shelf {
    async fn list(&self, _: &Kind, limit: u32, token: Option<&str>) -> Result<Page, ClusterError> {
        if let Some(left) = locked(&self.pages_left).as_mut() {
            *left = left
                .checked_sub(1)
                .ok_or_else(|| ClusterError::Refused("the test's cluster went away".to_owned()))?;
        }
        let mut lists = locked(&self.lists);
        let (list, from) = match token {
            None => {
                lists.push(locked(&self.objects).values().cloned().collect());
                (lists.len() - 1, 0)
            }
            Some(token) => {
                let mut expired = locked(&self.expired);
                if *expired > 0 {
                    *expired -= 1;
                    return Err(ClusterError::Expired("the continue token is too old".to_owned()));
                }
                let (list, from) = token.split_once('/').expect("a token of ours");
                (list.parse().unwrap(), from.parse().unwrap())
            }
        };
        let end = lists[list].len().min(from + limit as usize);
        let rest = lists[list].len() - end;
        Ok(Page {
            objects: lists[list][from..end].to_vec(),
            resource_version: ResourceVersion(1_000),
            continue_token: (rest > 0).then(|| format!("{list}/{end}")),
            remaining: Some(rest as u64),
            ..Page::default()
        })
    }

    async fn get(&self, _: &Kind, name: &ObjectName) -> Result<Option<Object>, ClusterError> {
        let act = locked(&self.gets).pop();
        if let Some(act) = act {
            act(self);
        }
        Ok(locked(&self.objects).get(name).cloned())
    }
}

/// As an API server does it for a kind with a status subresource: a status comes apart or not at all.
#[async_trait]
impl CreateApi for Shelf {
    async fn create(&self, kind: &Kind, name: &ObjectName, text: &str) -> Result<Object, ClusterError> {
        self.rehearse(kind, name, text).await?;
        {
            let mut refused = locked(&self.creations_refused);
            if *refused > 0 {
                *refused -= 1;
                return Err(ClusterError::Refused("no room today".to_owned()));
            }
        }
        let mut sent: Value = serde_json::from_str(text).expect("JSON is sent");
        sent.as_object_mut().expect("an object is sent").remove("status");
        sent["metadata"]["uid"] = format!("new-{}", name.name).into();
        Ok(self.take_in(name, sent))
    }

    async fn rehearse(&self, _: &Kind, name: &ObjectName, _: &str) -> Result<(), ClusterError> {
        if locked(&self.objects).contains_key(name) {
            return Err(ClusterError::Conflict(format!("{name} already exists")));
        }
        Ok(())
    }

    async fn set_status(
        &self,
        _: &Kind,
        name: &ObjectName,
        _: &Uid,
        status: &RawValue,
    ) -> Result<Object, ClusterError> {
        let mut refused = locked(&self.statuses_refused);
        if *refused > 0 {
            *refused -= 1;
            return Err(ClusterError::Refused("no status today".to_owned()));
        }
        let mut object = self.shown(&name.name).expect("it was created");
        object["status"] = serde_json::from_str(status.get()).expect("a status is JSON");
        Ok(self.take_in(name, object))
    }
}
