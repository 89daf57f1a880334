//! Who asks.

use std::fmt;

/// The identity with which a request came.
#[derive(Clone, Default)]
pub struct Caller {
    /// The bearer token, if one was sent.
    pub bearer: Option<String>,
    /// What the client calls itself; names the field manager where the request does not.
    pub user_agent: Option<String>,
}

/// Never shows the token.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("bearer", &self.bearer.as_ref().map(|_| "…"))
            .field("user_agent", &self.user_agent)
            .finish()
    }
}
