//! What the cluster says of the objects that one owns. SQL may not have them yet, or not by the field that names their
//! owner.

use kindex_kube_client::{ClusterCause, ClusterError, ObjectName, SelectApi, Selection};
use kindex_model::kind::{Kind, Registry, Scope};
use kindex_model::named_object::{named, naming_fields};
use kindex_model::object::{Object, Uid};
use kindex_model::reference::{Named, Reference, Target};

/// Objects a page: mostly there are none.
const PAGE_OBJECTS: u32 = 100;

/// An object that may own others.
pub(super) struct Owner<'a> {
    pub(super) registry: &'a Registry,
    pub(super) kind: &'a Kind,
    pub(super) name: &'a ObjectName,
    pub(super) uid: &'a Uid,
}

impl Owner<'_> {
    /// Whether an object in the cluster, other than this one and not being deleted, names it as its owner in a field by
    /// which a cluster selects.
    ///
    /// # Guarantees
    /// An object counts from the moment at which the cluster has it. One list for each such field, up to the first that
    /// finds an object. Each page has a limit of time, and all together have none.
    ///
    /// # Errors
    /// Where the cluster does not say.
    pub(super) async fn owns_in_cluster(&self, cluster: &dyn SelectApi) -> Result<bool, ClusterError> {
        for (holder, reference, _) in self.registry.referrers(self.kind) {
            if reference.owned && holder.cluster && self.is_named_in_cluster(cluster, holder, reference).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn is_named_in_cluster(
        &self,
        cluster: &dyn SelectApi,
        holder: &'static Kind,
        reference: &'static Reference,
    ) -> Result<bool, ClusterError> {
        let Some(field) = selectable_field(holder, reference) else {
            return Ok(false);
        };
        let (namespace, fields) = (self.namespace_of(reference), format!("{field}={}", self.name.name));
        let mut token = None;
        loop {
            let selection = Selection {
                namespace,
                fields: &fields,
                limit: PAGE_OBJECTS,
                continue_token: token.as_deref(),
            };
            let page = match cluster.select(holder, selection).await {
                Ok(Some(page)) => page,
                Ok(None) => {
                    tracing::debug!(
                        kind = holder.name,
                        field,
                        "The cluster does not select by the field of an owner"
                    );
                    return Ok(false);
                }
                Err(ClusterError::Unserved {
                    in_other_version: false,
                    ..
                }) => return Ok(false),
                Err(error) => return Err(unknown(holder, error)),
            };
            if page
                .objects
                .iter()
                .any(|object| self.is_named_by(holder, reference, object))
            {
                return Ok(true);
            }
            token = page.continue_token;
            if token.is_none() {
                return Ok(false);
            }
        }
    }

    /// The namespace in which the objects are that name this one; `None` for all of them.
    fn namespace_of(&self, reference: &Reference) -> Option<&str> {
        match (self.kind.scope, reference.named) {
            (Scope::Namespaced, Named::Name) => Some(&self.name.namespace),
            (Scope::Namespaced, Named::Identifier) | (Scope::Cluster, _) => None,
        }
    }

    fn is_named_by(&self, holder: &'static Kind, reference: &'static Reference, object: &Object) -> bool {
        let scope = |target: &Target| match self.is_target(target) {
            true => self.kind.scope,
            false => Scope::Namespaced,
        };
        let metadata = &object.metadata;
        // A garbage collector leaves alone what is being deleted already, so the owner need not wait for it.
        if metadata.deletion_timestamp.is_some() || metadata.uid == *self.uid {
            return false;
        }
        let fields = naming_fields(holder, object.text()).ok();
        let named = fields.and_then(|fields| named(holder, reference, &fields, scope));
        named.is_some_and(|named| {
            self.is_target(named.target) && named.namespace == self.name.namespace && named.name == self.name.name
        })
    }

    fn is_target(&self, target: &Target) -> bool {
        target.service.is_none() && (target.group, target.kind) == (self.kind.group, self.kind.name)
    }
}

/// A failure that is about the kind of owned objects. None of them says that the owner is gone.
fn unknown(holder: &Kind, error: ClusterError) -> ClusterError {
    let said = |message: String| format!("{}: {message}", holder.crd_name());
    match error {
        ClusterError::NotFound(message) | ClusterError::Unserved { message, .. } => ClusterError::Retryable {
            cause: ClusterCause::NotFound,
            retry_after: None,
            message: said(message),
        },
        ClusterError::Retryable {
            cause,
            retry_after,
            message,
        } => ClusterError::Retryable {
            cause,
            retry_after,
            message: said(message),
        },
        ClusterError::Conflict(message) | ClusterError::Refused(message) => ClusterError::Refused(said(message)),
        ClusterError::Expired(message) => ClusterError::Expired(said(message)),
    }
}

/// The field with the name of an owner, as a field selector has it, where the CRD declares it as selectable: that of a
/// key.
fn selectable_field(holder: &Kind, reference: &Reference) -> Option<String> {
    let mut path = reference.path.to_vec();
    match reference.named {
        Named::Name => {}
        Named::Identifier => path.push("name"),
    }
    let column = holder.columns.iter().find(|column| column.path == path)?;
    let mut keys = holder.keys.iter();
    let is_key = keys.any(|key| key.columns.contains(&column.name));
    is_key.then(|| path.join("."))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use async_trait::async_trait;
    use kindex_kube_client::Page;
    use kindex_model::kind::{Column, ColumnType, Key};
    use kindex_model::reference::OnDelete;
    use serde_json::{Value, json};

    use super::*;

    const fn column(name: &'static str, path: &'static [&'static str]) -> Column {
        Column {
            name,
            path,
            ty: ColumnType::Text { chars: 253 },
            own_namespace: false,
        }
    }

    const OWNER: Reference = Reference {
        name: "owner",
        targets: &[Target {
            service: None,
            group: "g",
            kind: "Project",
        }],
        kind_column: None,
        path: &["spec", "owner"],
        named: Named::Identifier,
        columns: &["owner_name"],
        owned: true,
        on_delete: OnDelete::Cascade,
    };

    static PROJECT: Kind = Kind {
        name: "Project",
        group: "g",
        ..Kind::EMPTY
    };
    static RUN: Kind = Kind {
        name: "Run",
        group: "g",
        plural: "runs",
        cluster: true,
        columns: &[
            column("owner_name", &["spec", "owner", "name"]),
            column("team", &["spec", "team"]),
        ],
        keys: &[Key {
            name: "run_owner",
            columns: &["owner_name"],
        }],
        references: &[OWNER],
        ..Kind::EMPTY
    };

    static REGISTRY: Registry = Registry {
        kinds: &[&PROJECT, &RUN],
        ..Registry::EMPTY
    };

    type Answer = Result<Option<Page>, ClusterError>;

    /// A cluster that gives these answers, whatever is selected.
    struct Answers {
        answers: Mutex<VecDeque<Answer>>,
        asked: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl SelectApi for Answers {
        async fn select(&self, kind: &Kind, selection: Selection<'_>) -> Answer {
            let namespace = selection.namespace.unwrap_or("*");
            let token = selection.continue_token.unwrap_or("start");
            let asked = format!("{} {namespace} {} from {token}", kind.name, selection.fields);
            self.asked.lock().expect("not poisoned").push(asked);
            self.answers
                .lock()
                .expect("not poisoned")
                .pop_front()
                .expect("an answer")
        }
    }

    /// A page with these objects; another one follows it where it is not the last.
    fn page(objects: &[Value], is_last: bool) -> Answer {
        let objects = objects.iter().map(|object| Object::parse_str(&object.to_string()));
        Ok(Some(Page {
            objects: objects.collect::<Result<_, _>>().expect("objects"),
            continue_token: (!is_last).then(|| "more".to_owned()),
            ..Page::default()
        }))
    }

    async fn owns(answers: Vec<Answer>) -> (Result<bool, ClusterError>, Vec<String>) {
        let name = ObjectName {
            namespace: "n".to_owned(),
            name: "a".to_owned(),
        };
        let cluster = Answers {
            answers: Mutex::new(answers.into()),
            asked: Mutex::default(),
        };
        let owner = Owner {
            registry: &REGISTRY,
            kind: &PROJECT,
            name: &name,
            uid: &Uid::from("u"),
        };
        let found = owner.owns_in_cluster(&cluster).await;
        (found, cluster.asked.into_inner().expect("not poisoned"))
    }

    fn run(uid: &str, namespace: &str, owner: &Value) -> Value {
        let metadata = json!({"name": "r", "namespace": namespace, "uid": uid, "resourceVersion": "1"});
        json!({"apiVersion": "g/v1", "kind": "Run", "metadata": metadata, "spec": {"owner": owner}})
    }

    /// As if an object of that name in another namespace were owned as well.
    #[tokio::test]
    async fn an_object_owns_those_that_name_it_and_not_itself() {
        let (named, own) = (json!({"namespace": "n", "name": "a"}), json!({"name": "a"}));
        let mut leaving = run("r", "n", &own);
        leaving["metadata"]["deletionTimestamp"] = json!("2026-11-30T00:00:00Z");
        for (object, expected) in [
            (run("r", "n", &own), true),
            (run("r", "other", &named), true),
            (run("r", "other", &own), false),
            (run("r", "n", &json!({"name": "b"})), false),
            (run("u", "n", &own), false),
            (leaving, false),
        ] {
            let (found, asked) = owns(vec![page(std::slice::from_ref(&object), true)]).await;
            assert_eq!(found, Ok(expected), "{object}");
            assert_eq!(asked, ["Run * spec.owner.name=a from start"]);
        }
    }

    /// As if a first page without an owned object were all.
    #[tokio::test]
    async fn all_pages_are_read_until_an_owned_object_is_found() {
        let owned = run("r", "n", &json!({"name": "a"}));
        let (found, asked) = owns(vec![page(&[], false), page(&[owned], false)]).await;
        assert_eq!(found, Ok(true));
        assert_eq!(asked[1], "Run * spec.owner.name=a from more");
        assert_eq!(owns(vec![page(&[], false), page(&[], true)]).await.0, Ok(false));
    }

    /// As if an owner were archived because nothing is known of what it owns.
    #[tokio::test]
    async fn only_a_cluster_without_the_kind_has_none_of_it() {
        let unserved = |in_other_version| ClusterError::Unserved {
            in_other_version,
            message: "no".to_owned(),
        };
        for none in [Ok(None), Err(unserved(false))] {
            assert_eq!(owns(vec![none]).await.0, Ok(false));
        }
        for error in [
            unserved(true),
            ClusterError::NotFound("no".to_owned()),
            ClusterError::Refused("no".to_owned()),
            ClusterError::Expired("no".to_owned()),
        ] {
            let found = owns(vec![Err(error)]).await.0.expect_err("nothing is known");
            assert!(!found.is_absence(), "{found:?}");
            assert!(found.to_string().ends_with("runs.g: no"), "{found}");
        }
    }

    #[test]
    fn a_cluster_selects_by_the_fields_of_keys() {
        let of = |reference: &Reference| selectable_field(&RUN, reference);
        assert_eq!(of(&OWNER).as_deref(), Some("spec.owner.name"));
        let team = Reference {
            path: &["spec", "team"],
            named: Named::Name,
            ..OWNER
        };
        assert_eq!(of(&team), None, "no key has its column");
        let unknown = Reference {
            path: &["spec", "unknown"],
            ..team
        };
        assert_eq!(of(&unknown), None, "it has no column");
    }
}
