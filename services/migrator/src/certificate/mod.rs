//! The certificate of the conversion webhook, where Kindex makes it: an authority of its own and a certificate for the
//! webhook's host lie in a Secret that all replicas share, and every definition that asks the webhook lists the
//! authority. Whoever finds something due renews it, on condition of what it read; the others take up what they find.

mod step;

mod material;

mod secret;

mod definitions;

mod rotator;

pub use definitions::Address;
pub use material::MaterialError;
pub use rotator::{CertificateError, CertificateRotator};
pub use secret::SecretName;
