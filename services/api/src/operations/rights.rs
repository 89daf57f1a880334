//! Authorization. The cluster identifies the user of a token (TokenReview) and decides what that user may do
//! (SubjectAccessReview), also with archived objects. Results are cached for a while.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use kindex_kube_api::request::Collection;
use kindex_model::kind::Scope;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cluster::{Call, Upstream};
use super::{Caller, Impersonation, ObjectKey, Part, Reason, Refusal, Resource, RightsOf, User, refusal};

/// How long an answer of the cluster is used.
const REVIEW_TTL: Duration = Duration::from_secs(10);
/// Answers that are cached at most.
const REVIEWS_MAX: usize = 10_000;
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
    verb: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    subresource: &'static str,
    namespace: String,
    name: String,
}

/// What is asked for with one verb of one kind.
pub(super) struct Wanted<'a> {
    pub(super) verb: &'static str,
    pub(super) resource: Resource,
    /// All namespaces where there is none.
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) part: Part,
}

impl<'a> Wanted<'a> {
    pub(super) fn at(verb: &'static str, key: &ObjectKey<'a>) -> Self {
        Self {
            verb,
            resource: key.resource,
            namespace: Some(key.namespace),
            name: key.name,
            part: Part::Main,
        }
    }

    pub(super) fn of(verb: &'static str, resource: Resource, namespace: Option<&'a str>) -> Self {
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
            group: self.resource.kind.group,
            version: self.resource.version,
            resource: self.resource.kind.plural,
            subresource: match self.part {
                Part::Main => "",
                Part::Status => "status",
            },
            namespace: self.namespace.unwrap_or_default().to_owned(),
            name: self.name.to_owned(),
        }
    }
}

/// Answers of the cluster, for as long as they are used.
struct ReviewCache<K, V>(Mutex<HashMap<K, (Instant, V)>>);

impl<K: Hash + Eq, V: Clone> ReviewCache<K, V> {
    fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    fn get(&self, key: &K, now: Instant) -> Option<V> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (reviewed, value) = answers.get(key)?;
        is_fresh(*reviewed, now).then(|| value.clone())
    }

    fn put(&self, key: K, value: V, now: Instant) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= REVIEWS_MAX {
            answers.retain(|_, (reviewed, _)| is_fresh(*reviewed, now));
        }
        if answers.len() >= REVIEWS_MAX {
            answers.clear();
        }
        answers.insert(key, (now, value));
    }
}

/// Whether an answer of that time is still used.
fn is_fresh(reviewed: Instant, now: Instant) -> bool {
    now.saturating_duration_since(reviewed) < REVIEW_TTL
}

/// Who may do what.
pub(super) struct Rights {
    of: RightsOf,
    /// By the hash of the token: a token is kept no longer than its request.
    users: ReviewCache<[u8; 32], User>,
    /// Why it is not allowed, where it is not.
    reviews: ReviewCache<(User, Attributes), Result<(), String>>,
}

impl Rights {
    pub(super) fn new(of: RightsOf) -> Self {
        Self {
            of,
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
        if let Some(user) = &caller.vouched {
            return user.username.clone();
        }
        let key = |token: &String| -> [u8; 32] { Sha256::digest(token).into() };
        let user = caller
            .bearer
            .as_ref()
            .and_then(|token| self.users.get(&key(token), Instant::now()));
        let user = user.map_or_else(|| "unknown".to_owned(), |user| user.username);
        match &caller.impersonate {
            Some(other) => format!("{user} as {}", other.user),
            None => user,
        }
    }

    /// Refuses what the caller may not do. Who is refused learns nothing of what is there.
    pub(super) async fn allow(&self, upstream: &Upstream, caller: &Caller, wanted: Wanted<'_>) -> Result<(), Refusal> {
        match (self.of, &caller.impersonate) {
            _ if caller.on_behalf => return Ok(()),
            (RightsOf::Server, None) => return Ok(()),
            (RightsOf::Server, Some(_)) => {
                return Err(Refusal::new(
                    Reason::Forbidden,
                    "impersonation is not supported with --rights server",
                ));
            }
            (RightsOf::Caller, _) => {}
        }
        let user = self.user(upstream, caller).await?;
        let user = match &caller.impersonate {
            Some(impersonation) => self.impersonated(upstream, &user, impersonation).await?,
            None => user,
        };
        let denied = self.review(upstream, &user, wanted.attributes()).await?;
        denied.map_err(|why| forbidden(&user, &wanted, &why))
    }

    /// The name of the user with these credentials.
    pub(super) async fn authenticate(&self, upstream: &Upstream, caller: &Caller) -> Result<String, Refusal> {
        Ok(self.user(upstream, caller).await?.username)
    }

    async fn user(&self, upstream: &Upstream, caller: &Caller) -> Result<User, Refusal> {
        if let Some(user) = &caller.vouched {
            return Ok(user.clone());
        }
        let unauthorized = || Refusal::new(Reason::Unauthorized, "Unauthorized");
        let token = caller.bearer.as_deref().ok_or_else(unauthorized)?;
        let key: [u8; 32] = Sha256::digest(token).into();
        if let Some(user) = self.users.get(&key, Instant::now()) {
            return Ok(user);
        }
        let reviewed = Instant::now();
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let status = review_by(upstream, caller, TOKEN_REVIEWS, &review).await?;
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
    async fn impersonated(&self, upstream: &Upstream, user: &User, wanted: &Impersonation) -> Result<User, Refusal> {
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
                verb: "impersonate",
                group: "",
                version: "v1",
                resource,
                subresource: "",
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            };
            if self.review(upstream, user, attributes).await?.is_err() {
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

    async fn review(
        &self,
        upstream: &Upstream,
        user: &User,
        attributes: Attributes,
    ) -> Result<Result<(), String>, Refusal> {
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
        let status = review_by(upstream, &Caller::default(), ACCESS_REVIEWS, &review).await?;
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
    let mut reviewed: Value = serde_json::from_slice(&answer.text).unwrap_or_default();
    Ok(reviewed["status"].take())
}

fn forbidden(user: &User, wanted: &Wanted<'_>, why: &str) -> Refusal {
    let Wanted {
        verb, resource, name, ..
    } = wanted;
    let kind = resource.kind;
    let resource = match wanted.part {
        Part::Main => kind.plural.to_owned(),
        Part::Status => format!("{}/status", kind.plural),
    };
    let scope = match (kind.scope, wanted.namespace) {
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
    Refusal::new(Reason::Forbidden, message).with(refusal::named(kind).details(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_cached_for_a_while() {
        let (answers, reviewed) = (ReviewCache::new(), Instant::now());
        answers.put("jane", "may", reviewed);
        let at = |passed| answers.get(&"jane", reviewed + passed);
        assert_eq!(at(Duration::ZERO), Some("may"));
        assert_eq!(at(REVIEW_TTL - Duration::from_millis(1)), Some("may"));
        assert_eq!(at(REVIEW_TTL), None);
        assert_eq!(at(Duration::from_secs(3600)), None);
        assert_eq!(answers.get(&"joe", reviewed), None);
        answers.put("jane", "may not", reviewed + REVIEW_TTL);
        assert_eq!(at(REVIEW_TTL), Some("may not"), "asked again");
    }

    #[test]
    fn answers_are_cached_up_to_a_limit_and_fresh_ones_before_the_others() {
        let (answers, reviewed) = (ReviewCache::new(), Instant::now());
        for user in 0..REVIEWS_MAX {
            answers.put(user, (), if user == 0 { reviewed + REVIEW_TTL } else { reviewed });
        }
        let later = reviewed + REVIEW_TTL;
        answers.put(REVIEWS_MAX, (), later);
        assert_eq!(
            [0, 1, REVIEWS_MAX].map(|user| answers.get(&user, later).is_some()),
            [true, false, true]
        );
        let held = |answers: &ReviewCache<usize, ()>| answers.0.lock().expect("no panic").len();
        assert_eq!(held(&answers), 2);
        for user in 0..3 * REVIEWS_MAX {
            answers.put(user, (), later);
            assert!(held(&answers) <= REVIEWS_MAX);
        }
    }
}
