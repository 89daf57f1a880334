//! API keys: who calls, of which project, and what the caller may do. Only hashes are stored. A key that was ever made
//! closes the service to callers without one, also after it was revoked. Decisions are pure and get the time.

mod scope;

mod key;

mod table;

mod store;

mod ring;

pub use key::{Key, NewKey, Secret, SecretError, hash};
pub use ring::KeyRing;
pub use scope::{Scope, Scopes, ScopesError};
pub use store::{KeyStore, KeyStoreError};
pub use table::{Caller, KeyTable};
