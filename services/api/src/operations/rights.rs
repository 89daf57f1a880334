//! What a caller may do. With the callers' own rights the cluster says who has a token (TokenReview) and what that
//! user may do (SubjectAccessReview), also with objects that the cluster does not have; its word counts for a while.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use kindex_kube_api::request::Collection;
use kindex_model::kind::{Kind, Scope};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cluster::{Call, Upstream};
use super::{Caller, Impersonation, Part, Place, Reason, Refusal, RightsOf, User, refusal};

/// How long the cluster's word counts.
const WORD_COUNTS: Duration = Duration::from_secs(10);
/// Words that are remembered at most.
const WORDS_MAX: usize = 10_000;
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

/// What somebody wants to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Deed {
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
    pub(super) kind: &'static Kind,
    /// All namespaces where there is none.
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) part: Part,
}

impl<'a> Wanted<'a> {
    pub(super) fn at(verb: &'static str, place: &Place<'a>) -> Self {
        Self {
            verb,
            kind: place.kind,
            namespace: Some(place.namespace),
            name: place.name,
            part: Part::Main,
        }
    }

    pub(super) fn of(verb: &'static str, kind: &'static Kind, namespace: Option<&'a str>) -> Self {
        Self {
            verb,
            kind,
            namespace,
            name: "",
            part: Part::Main,
        }
    }

    fn deed(&self) -> Deed {
        Deed {
            verb: self.verb,
            group: self.kind.group,
            version: self.kind.version,
            resource: self.kind.plural,
            subresource: match self.part {
                Part::Main => "",
                Part::Status => "status",
            },
            namespace: self.namespace.unwrap_or_default().to_owned(),
            name: self.name.to_owned(),
        }
    }
}

/// What the cluster said, for as long as it counts.
struct Words<K, V>(Mutex<HashMap<K, (Instant, V)>>);

impl<K: Hash + Eq, V: Clone> Words<K, V> {
    fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    fn get(&self, key: &K, now: Instant) -> Option<V> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (said, value) = words.get(key)?;
        counts(*said, now).then(|| value.clone())
    }

    fn put(&self, key: K, value: V, now: Instant) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() >= WORDS_MAX {
            words.retain(|_, (said, _)| counts(*said, now));
        }
        if words.len() >= WORDS_MAX {
            words.clear();
        }
        words.insert(key, (now, value));
    }
}

/// Whether what was said then counts now.
fn counts(said: Instant, now: Instant) -> bool {
    now.saturating_duration_since(said) < WORD_COUNTS
}

/// Who may do what.
pub(super) struct Rights {
    of: RightsOf,
    /// By the hash of the token: a token is kept no longer than its request.
    users: Words<[u8; 32], User>,
    /// Why it is not allowed, where it is not.
    deeds: Words<(User, Deed), Result<(), String>>,
}

impl Rights {
    pub(super) fn new(of: RightsOf) -> Self {
        Self {
            of,
            users: Words::new(),
            deeds: Words::new(),
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
                    "this server acts with its own rights (--rights server) and as nobody else: leave out \
                     impersonation",
                ));
            }
            (RightsOf::Caller, _) => {}
        }
        let user = self.user(upstream, caller).await?;
        let user = match &caller.impersonate {
            Some(impersonation) => self.impersonated(upstream, &user, impersonation).await?,
            None => user,
        };
        let denied = self.ask(upstream, &user, wanted.deed()).await?;
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
        let asked = Instant::now();
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let status = review_by(upstream, caller, TOKEN_REVIEWS, &review).await?;
        if status["authenticated"] != true {
            return Err(unauthorized());
        }
        let mut user: User = serde_json::from_value(status["user"].clone()).map_err(|_| unauthorized())?;
        if status["user"]["extra"].is_object() {
            user.extra = status["user"]["extra"].to_string();
        }
        self.users.put(key, user.clone(), asked);
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
            let deed = Deed {
                verb: "impersonate",
                group: "",
                version: "v1",
                resource,
                subresource: "",
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            };
            if self.ask(upstream, user, deed).await?.is_err() {
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

    async fn ask(&self, upstream: &Upstream, user: &User, deed: Deed) -> Result<Result<(), String>, Refusal> {
        let key = (user.clone(), deed);
        if let Some(word) = self.deeds.get(&key, Instant::now()) {
            return Ok(word);
        }
        let asked = Instant::now();
        let (user, deed) = &key;
        let mut review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.username,
                "uid": user.uid,
                "groups": user.groups,
                "resourceAttributes": {
                    "verb": deed.verb,
                    "group": deed.group,
                    "version": deed.version,
                    "resource": deed.resource,
                    "subresource": deed.subresource,
                    "namespace": deed.namespace,
                    "name": deed.name,
                },
            },
        });
        if let Ok(extra) = serde_json::from_str::<Value>(&user.extra) {
            review["spec"]["extra"] = extra;
        }
        let status = review_by(upstream, &Caller::default(), ACCESS_REVIEWS, &review).await?;
        let word = match status["allowed"] == true {
            true => Ok(()),
            false => Err(status["reason"].as_str().unwrap_or_default().to_owned()),
        };
        self.deeds.put(key, word.clone(), asked);
        Ok(word)
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
            "The cluster reviews nothing for us"
        );
        Refusal::new(
            Reason::ServiceUnavailable,
            "rights cannot be checked now: the server has to be allowed to create tokenreviews and \
             subjectaccessreviews (ClusterRole system:auth-delegator)",
        )
    })?;
    let mut reviewed: Value = serde_json::from_slice(&answer.text).unwrap_or_default();
    Ok(reviewed["status"].take())
}

fn forbidden(user: &User, wanted: &Wanted<'_>, why: &str) -> Refusal {
    let Wanted { verb, kind, name, .. } = wanted;
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
    fn the_clusters_word_counts_for_a_while_and_no_longer() {
        let (words, said) = (Words::new(), Instant::now());
        words.put("jane", "may", said);
        let at = |passed| words.get(&"jane", said + passed);
        assert_eq!(at(Duration::ZERO), Some("may"));
        assert_eq!(at(WORD_COUNTS - Duration::from_millis(1)), Some("may"));
        assert_eq!(at(WORD_COUNTS), None);
        assert_eq!(at(Duration::from_secs(3600)), None);
        assert_eq!(words.get(&"joe", said), None);
        words.put("jane", "may not", said + WORD_COUNTS);
        assert_eq!(at(WORD_COUNTS), Some("may not"), "asked again");
    }

    #[test]
    fn so_many_words_are_remembered_and_those_that_count_before_the_others() {
        let (words, said) = (Words::new(), Instant::now());
        for user in 0..WORDS_MAX {
            words.put(user, (), if user == 0 { said + WORD_COUNTS } else { said });
        }
        let later = said + WORD_COUNTS;
        words.put(WORDS_MAX, (), later);
        assert_eq!(
            [0, 1, WORDS_MAX].map(|user| words.get(&user, later).is_some()),
            [true, false, true]
        );
        let held = |words: &Words<usize, ()>| words.0.lock().expect("no panic").len();
        assert_eq!(held(&words), 2);
        for user in 0..3 * WORDS_MAX {
            words.put(user, (), later);
            assert!(held(&words) <= WORDS_MAX);
        }
    }
}
