//! Authorization. The cluster identifies the user of a token (TokenReview) and decides what that user may do
//! (SubjectAccessReview), also with archived objects. Results are cached for a while.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::Method;
use kindex_kube_api::request::{Collection, Verb};
use kindex_kube_api::status::{GroupResource, Status};
use kindex_model::kind::{Kind, Scope};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cluster::{Call, Upstream};
use super::reviews::ReviewCache;
use super::{Caller, Impersonation, ObjectKey, Part, Reason, Refusal, Resource, RightsOf, User, refusal};

const TOKEN_REVIEWS: Collection<'static> = Collection {
    group: "authentication.k8s.io",
    version: "v1",
    plural: "tokenreviews",
    namespace: None,
};
const ACCESS_REVIEWS: Collection<'static> = Collection {
    group: "authorization.k8s.io",
    version: "v1",
    plural: "subjectaccessreviews",
    namespace: None,
};
/// What begins the user names of service accounts; a namespace and a name follow. The right to act as one is a right
/// on `serviceaccounts` of that namespace. <https://kubernetes.io/docs/reference/access-authn-authz/authentication/>
const ACCOUNT: &str = "system:serviceaccount:";
/// The group of all of them, and with a namespace that of those in it.
const ACCOUNTS: &str = "system:serviceaccounts";
/// The group that everybody is in who is somebody.
const AUTHENTICATED: &str = "system:authenticated";

/// What a caller wants to do, as a SubjectAccessReview's resource attributes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Attributes {
    verb: Verb,
    group: Cow<'static, str>,
    version: &'static str,
    resource: Cow<'static, str>,
    subresource: &'static str,
    namespace: String,
    name: String,
}

/// The permission that an operation needs: one verb on one kind.
pub(super) struct RequiredPermission<'a> {
    pub(super) verb: Verb,
    pub(super) resource: Resource,
    /// All namespaces where there is none.
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) part: Part,
}

impl<'a> RequiredPermission<'a> {
    pub(super) fn at(verb: Verb, key: &ObjectKey<'a>) -> Self {
        Self {
            verb,
            resource: key.resource,
            namespace: Some(key.namespace),
            name: key.name,
            part: Part::Main,
        }
    }

    pub(super) fn of(verb: Verb, resource: Resource, namespace: Option<&'a str>) -> Self {
        Self {
            verb,
            resource,
            namespace,
            name: "",
            part: Part::Main,
        }
    }

    fn attributes(&self) -> Attributes {
        Attributes {
            verb: self.verb,
            group: self.resource.kind.group.into(),
            version: self.resource.version,
            resource: self.resource.kind.plural.into(),
            subresource: match self.part {
                Part::Main => "",
                Part::Status => "status",
            },
            namespace: self.namespace.unwrap_or_default().to_owned(),
            name: self.name.to_owned(),
        }
    }
}

/// The object in whose name somebody sets or releases a reference. It takes the right to `update` the subresource
/// `references` of the object, wherever it is of this cluster or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HolderResource {
    pub(super) group: String,
    /// The plural.
    pub(super) resource: String,
    /// Empty where it is not known: then the right is wanted in all namespaces.
    pub(super) namespace: String,
    /// Empty where it is not known: then the right is wanted on all objects.
    pub(super) name: String,
}

impl HolderResource {
    fn attributes(&self) -> Attributes {
        Attributes {
            verb: Verb::Update,
            group: self.group.clone().into(),
            version: "*",
            resource: self.resource.clone().into(),
            subresource: "references",
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// Who may do what.
pub(super) struct Rights {
    of: RightsOf,
    /// What is asked.
    upstream: Arc<Upstream>,
    /// By the hash of the token: a token is kept no longer than its request.
    users: ReviewCache<[u8; 32], User>,
    /// Why it is not allowed, where it is not.
    reviews: ReviewCache<(User, Attributes), Result<(), String>>,
}

impl Rights {
    pub(super) fn new(of: RightsOf, upstream: Arc<Upstream>) -> Self {
        Self {
            of,
            upstream,
            users: ReviewCache::new(),
            reviews: ReviewCache::new(),
        }
    }

    /// Whether everybody who asks is given the server's own rights.
    pub(super) fn are_of_the_server(&self) -> bool {
        self.of == RightsOf::Server
    }

    /// The caller's name, as far as it was asked for already.
    pub(super) fn known(&self, caller: &Caller) -> String {
        if let Some(user) = &caller.front_proxy_user {
            return user.username.clone();
        }
        let key = |token: &String| -> [u8; 32] { Sha256::digest(token).into() };
        let user = caller
            .bearer_token
            .as_ref()
            .and_then(|token| self.users.get(&key(token), Instant::now()));
        let user = user.map_or_else(|| "unknown".to_owned(), |user| user.username);
        match &caller.impersonate {
            Some(other) => format!("{user} as {}", other.user),
            None => user,
        }
    }

    /// Refuses what the caller may not do. Who is refused learns nothing of what is there.
    pub(super) async fn allow(&self, caller: &Caller, permission: RequiredPermission<'_>) -> Result<(), Refusal> {
        let denied = self.denied(caller, permission.attributes()).await?;
        denied.map_or(Ok(()), |(user, why)| Err(forbidden(&user, &permission, &why)))
    }

    /// Whether a caller may read the objects of a kind in a namespace.
    pub(super) async fn may_read(&self, caller: &Caller, kind: &'static Kind, namespace: &str) -> bool {
        let permission = RequiredPermission::of(Verb::Get, kind.into(), Some(namespace));
        self.allow(caller, permission).await.is_ok()
    }

    /// Refuses who may not speak for the holder of a reference.
    pub(super) async fn allow_holder(&self, caller: &Caller, holder: &HolderResource) -> Result<(), Refusal> {
        let denied = self.denied(caller, holder.attributes()).await?;
        denied.map_or(Ok(()), |(user, why)| Err(forbidden_holder(&user, holder, &why)))
    }

    /// Who may not, and why; nobody where it is allowed.
    async fn denied(&self, caller: &Caller, attributes: Attributes) -> Result<Option<(User, String)>, Refusal> {
        match (self.of, &caller.impersonate) {
            _ if caller.on_behalf => return Ok(None),
            (RightsOf::Server, None) => return Ok(None),
            (RightsOf::Server, Some(_)) => {
                return Err(Refusal::new(
                    Reason::Forbidden,
                    "impersonation is not supported with --rights server",
                ));
            }
            (RightsOf::Caller, _) => {}
        }
        let user = self.user(caller).await?;
        let user = match &caller.impersonate {
            Some(impersonation) => self.impersonated(&user, impersonation).await?,
            None => user,
        };
        let reviewed = self.review(&user, attributes).await?;
        Ok(reviewed.err().map(|why| (user, why)))
    }

    /// The name of the user with these credentials.
    pub(super) async fn authenticate(&self, caller: &Caller) -> Result<String, Refusal> {
        Ok(self.user(caller).await?.username)
    }

    async fn user(&self, caller: &Caller) -> Result<User, Refusal> {
        if let Some(user) = &caller.front_proxy_user {
            return Ok(user.clone());
        }
        let unauthorized = || Refusal::from(Status::unauthorized());
        let token = caller.bearer_token.as_deref().ok_or_else(unauthorized)?;
        let key: [u8; 32] = Sha256::digest(token).into();
        if let Some(user) = self.users.get(&key, Instant::now()) {
            return Ok(user);
        }
        let reviewed = Instant::now();
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let status = review_by(&self.upstream, caller, TOKEN_REVIEWS, &review).await?;
        if status["authenticated"] != true {
            return Err(unauthorized());
        }
        let mut user: User = serde_json::from_value(status["user"].clone()).map_err(|_| unauthorized())?;
        if status["user"]["extra"].is_object() {
            user.extra = status["user"]["extra"].to_string();
        }
        self.users.put(key, user.clone(), reviewed);
        Ok(user)
    }

    /// The user as whom another may act.
    async fn impersonated(&self, user: &User, wanted: &Impersonation) -> Result<User, Refusal> {
        let refused = |what: &str| {
            let message = format!("{what} is forbidden: User {:?} cannot impersonate", user.username);
            Refusal::new(Reason::Forbidden, message)
        };
        if wanted.has_more || wanted.user.is_empty() {
            return Err(refused(
                "impersonation with a uid, with extra fields, or without a user",
            ));
        }
        let account = wanted.user.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':'));
        let (resource, namespace, name) = match account {
            Some((namespace, name)) => ("serviceaccounts", namespace, name),
            None => ("users", "", wanted.user.as_str()),
        };
        let groups = wanted.groups.iter().map(|group| ("groups", "", group.as_str()));
        for (resource, namespace, name) in [(resource, namespace, name)].into_iter().chain(groups) {
            let attributes = Attributes {
                verb: Verb::Impersonate,
                group: "".into(),
                version: "v1",
                resource: resource.into(),
                subresource: "",
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            };
            if self.review(user, attributes).await?.is_err() {
                return Err(refused(&format!("{resource} {name:?}")));
            }
        }
        let mut groups = wanted.groups.clone();
        if let Some((namespace, _)) = account.filter(|_| groups.is_empty()) {
            groups = vec![ACCOUNTS.to_owned(), format!("{ACCOUNTS}:{namespace}")];
        }
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Ok(User {
            username: wanted.user.clone(),
            groups,
            ..User::default()
        })
    }

    async fn review(&self, user: &User, attributes: Attributes) -> Result<Result<(), String>, Refusal> {
        let key = (user.clone(), attributes);
        if let Some(answer) = self.reviews.get(&key, Instant::now()) {
            return Ok(answer);
        }
        let reviewed = Instant::now();
        let (user, attributes) = &key;
        let mut review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.username,
                "uid": user.uid,
                "groups": user.groups,
                "resourceAttributes": {
                    "verb": attributes.verb,
                    "group": attributes.group,
                    "version": attributes.version,
                    "resource": attributes.resource,
                    "subresource": attributes.subresource,
                    "namespace": attributes.namespace,
                    "name": attributes.name,
                },
            },
        });
        if let Ok(extra) = serde_json::from_str::<Value>(&user.extra) {
            review["spec"]["extra"] = extra;
        }
        let status = review_by(&self.upstream, &Caller::default(), ACCESS_REVIEWS, &review).await?;
        let answer = match status["allowed"] == true {
            true => Ok(()),
            false => Err(status["reason"].as_str().unwrap_or_default().to_owned()),
        };
        self.reviews.put(key, answer.clone(), reviewed);
        Ok(answer)
    }
}

/// The status that the cluster gives to a review. That we may not ask is no refusal of the caller's.
async fn review_by(upstream: &Upstream, caller: &Caller, at: Collection<'_>, review: &Value) -> Result<Value, Refusal> {
    let body = Bytes::from(review.to_string());
    let call = Call::json(Method::POST, at.path(), Vec::new(), body);
    let answer = upstream.call(&caller.on_behalf(), call).await.map_err(|refusal| {
        tracing::error!(
            code = refusal.code,
            message = refusal.message,
            resource = at.plural,
            "The cluster does not answer a TokenReview or SubjectAccessReview"
        );
        Refusal::new(
            Reason::ServiceUnavailable,
            "permissions cannot be checked now: the server needs the ClusterRole system:auth-delegator, to create \
             tokenreviews and subjectaccessreviews",
        )
    })?;
    let reviewed = serde_json::from_slice(&answer.text);
    let mut reviewed: Value = reviewed.map_err(|error| Refusal::unreadable(&error))?;
    Ok(reviewed["status"].take())
}

fn forbidden_holder(user: &User, holder: &HolderResource, why: &str) -> Refusal {
    let HolderResource {
        group,
        resource,
        namespace,
        name,
    } = holder;
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {namespace:?}")
    };
    let object = if name.is_empty() {
        format!("{resource}.{group}")
    } else {
        format!("{resource}.{group} {name:?}")
    };
    let because = if why.is_empty() {
        String::new()
    } else {
        format!(": {why}")
    };
    let message = format!(
        "{object} is forbidden: User {:?} cannot update resource \"{resource}/references\" in API group {group:?} \
         {scope}, and so cannot set or release references of it{because}",
        user.username
    );
    let resource = GroupResource {
        group,
        plural: resource,
    };
    Refusal::new(Reason::Forbidden, message).with(resource.details(name))
}

fn forbidden(user: &User, permission: &RequiredPermission<'_>, why: &str) -> Refusal {
    let RequiredPermission {
        verb, resource, name, ..
    } = permission;
    let kind = resource.kind;
    let resource = match permission.part {
        Part::Main => kind.plural.to_owned(),
        Part::Status => format!("{}/status", kind.plural),
    };
    let scope = match (kind.scope, permission.namespace) {
        (Scope::Namespaced, Some(namespace)) => format!("in the namespace {namespace:?}"),
        (Scope::Namespaced, None) | (Scope::Cluster, _) => "at the cluster scope".to_owned(),
    };
    let because = if why.is_empty() {
        String::new()
    } else {
        format!(": {why}")
    };
    let qualified = if name.is_empty() {
        format!("{}.{}", kind.plural, kind.group)
    } else {
        format!("{}.{} {name:?}", kind.plural, kind.group)
    };
    let message = format!(
        "{qualified} is forbidden: User {:?} cannot {verb} resource {resource:?} in API group {:?} {scope}{because}",
        user.username, kind.group
    );
    Refusal::new(Reason::Forbidden, message).with(refusal::group_resource(kind).details(name))
}
