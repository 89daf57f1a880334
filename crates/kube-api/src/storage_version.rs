//! The hash by which discovery tells storage versions apart.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// How much of the digest there is in a hash.
const HASH_BYTES: usize = 8;

/// The `storageVersionHash` of a kind that is stored in `version`: base64 of the first eight bytes of SHA-256 over
/// `group/version/kind`. Clients compare hashes and take none apart.
/// <https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/discovery/storageversionhash.go>
pub fn hash(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    STANDARD.encode(&digest[..HASH_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_kubernetes_shows() {
        for (group, version, kind, expected) in [
            ("", "v1", "Pod", "xPOwRZ+Yhw8="),
            ("apps", "v1", "Deployment", "8aSe+NMegvE="),
            ("batch", "v1beta1", "CronJob", "h/JlFAZkyyY="),
            ("networking.k8s.io", "v1beta1", "IPAddress", "O4H8VxQhW5Y="),
            ("zoo.example.com", "v1alpha1", "Pet", "rsi7zQxickQ="),
        ] {
            assert_eq!(hash(group, version, kind), expected, "{group}/{version} {kind}");
        }
    }
}
