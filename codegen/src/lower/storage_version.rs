//! The hash by which Kubernetes tells storage versions apart.

use sha2::{Digest as _, Sha256};

use crate::model::{ApiVersion, GroupName, KindName};

/// As kube-apiserver computes it: base64 of the first eight bytes of SHA-256 over `group/version/kind`.
/// <https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/discovery/storageversionhash.go>
pub(super) fn hash(group: &GroupName, version: &ApiVersion, kind: &KindName) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    base64(&digest[..8])
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, at| {
            bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            if at <= chunk.len() {
                let index = (bits >> (18 - 6 * at)) & 63;
                text.push(char::from(ALPHABET[index as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_as_the_standard_does() {
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
    }

    /// As API servers show them in discovery.
    #[test]
    fn the_storage_version_hash_is_that_of_kubernetes() {
        for (group, version, kind, expected) in [
            ("apps", "v1", "Deployment", "8aSe+NMegvE="),
            ("apps", "v1", "DaemonSet", "dd7pWHUlMKQ="),
            ("batch", "v1", "CronJob", "sd5LIXh4Fjs="),
            ("batch", "v1beta1", "CronJob", "h/JlFAZkyyY="),
            ("autoscaling", "v2", "HorizontalPodAutoscaler", "qwQve8ut294="),
            ("networking.k8s.io", "v1beta1", "IPAddress", "O4H8VxQhW5Y="),
            ("storage.k8s.io", "v1", "StorageClass", "K+m6uJwbjGY="),
            ("zoo.example.com", "v1alpha1", "Pet", "rsi7zQxickQ="),
            ("cert-manager.io", "v1", "CertificateRequest", "tuxiikMaACg="),
            ("backups.cozystack.io", "v1alpha1", "RestoreJob", "QFMjUXUJlps="),
        ] {
            let group = GroupName::parse(group).expect("valid");
            let version = ApiVersion::parse(version).expect("valid");
            let kind = KindName::parse(kind).expect("valid");
            assert_eq!(hash(&group, &version, &kind), expected, "{group}/{version} {kind}");
        }
    }
}
