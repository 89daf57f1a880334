//! The caller of an operation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A user, as the cluster knows them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash, Serialize)]
#[serde(default)]
pub struct User {
    /// Empty for nobody.
    pub username: String,
    /// May be empty.
    pub uid: String,
    /// All of them.
    pub groups: Vec<String>,
    /// What else is known of the user: JSON text, an object of lists of texts.
    #[serde(skip)]
    pub extra: String,
}

/// With whose rights the server acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RightsOf {
    /// Its own: everybody who reaches it may do what it may do.
    Server,
    /// Each caller's.
    Caller,
}

/// The identity with which a request came.
#[derive(Clone, Default)]
pub struct Caller {
    /// The bearer token, if one was sent.
    pub bearer_token: Option<String>,
    /// Whom the caller wants to be taken for.
    pub impersonate: Option<Impersonation>,
    /// What the client calls itself; names the field manager where the request does not.
    pub user_agent: Option<String>,
    /// Who it is, where the front proxy, kube-apiserver, says so.
    pub(super) front_proxy_user: Option<User>,
    /// What is done for a caller whose right to it was checked, and that takes rights of another name in the cluster.
    pub(super) on_behalf: bool,
}

/// The user as whom somebody else acts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonation {
    /// The user.
    pub user: String,
    /// The groups of that user.
    pub groups: Vec<String>,
    /// Whether the request says more of that user than is understood here.
    pub has_more: bool,
}

impl Caller {
    /// Somebody with these credentials.
    pub fn new(bearer_token: Option<String>, impersonate: Option<Impersonation>, user_agent: Option<String>) -> Self {
        Self {
            bearer_token,
            impersonate,
            user_agent,
            front_proxy_user: None,
            on_behalf: false,
        }
    }

    /// A user whom the front proxy names: no token shows who it is, and there is none to hand on. What this user is
    /// allowed to do is done in the server's own name.
    pub fn from_front_proxy(user: User, user_agent: Option<String>) -> Self {
        Self {
            front_proxy_user: Some(user),
            ..Self::new(None, None, user_agent)
        }
    }

    /// Whether it has presented an identity.
    pub(crate) fn is_identified(&self) -> bool {
        self.bearer_token.is_some() || self.front_proxy_user.is_some()
    }

    /// Whether the front proxy says who it is.
    pub(super) fn is_from_front_proxy(&self) -> bool {
        self.front_proxy_user.is_some()
    }

    /// Whether requests go to the cluster with the server's credentials.
    pub(super) fn is_served_by_us(&self) -> bool {
        self.on_behalf || self.is_from_front_proxy()
    }

    /// The server, acting for this caller.
    pub(super) fn on_behalf(&self) -> Self {
        Self {
            bearer_token: None,
            impersonate: None,
            user_agent: self.user_agent.clone(),
            front_proxy_user: None,
            on_behalf: true,
        }
    }
}

/// Never shows the token.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("bearer_token", &self.bearer_token.as_ref().map(|_| "…"))
            .field("impersonate", &self.impersonate)
            .field("user_agent", &self.user_agent)
            .field("front_proxy_user", &self.front_proxy_user)
            .field("on_behalf", &self.on_behalf)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let caller = Caller {
            bearer_token: Some("secret".to_owned()),
            ..Caller::default()
        };
        assert!(!format!("{caller:?}").contains("secret"));
    }
}
