//! Signed addresses: what one allows, for whom and until when is in it, so that it is checked without asking anybody.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::upload::Checksum;
use crate::refusal::{Code, Refusal};
use crate::secrets::Secrets;

/// How long an address counts.
pub const ADDRESS_LIFETIME: Duration = Duration::from_secs(3600);

/// Where contents are sent to and fetched from, before the id of the upload.
pub(super) const PATH: &str = "/artifacts/";

/// Makes and checks addresses.
#[derive(Clone, Debug)]
pub struct Addresses {
    base: String,
    secrets: Secrets,
}

/// What a request says that shows an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown<'r> {
    pub(super) upload_id: &'r str,
    pub(super) query: &'r str,
}

/// What a request to send a file says of it. All of it is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) content_type: String,
    pub(super) bytes: u64,
    /// In base64, as the header `Content-MD5` has it.
    pub(super) checksum: Option<String>,
}

impl Announced {
    pub(super) fn new(content_type: &str, bytes: u64, checksum: Option<&Checksum>) -> Self {
        Self {
            content_type: content_type.to_owned(),
            bytes,
            checksum: checksum.map(|checksum| STANDARD.encode(checksum)),
        }
    }

    /// The headers that a client has to send.
    pub(super) fn headers(&self) -> impl Iterator<Item = (String, String)> {
        let checksum = self.checksum.iter().map(|checksum| ("Content-MD5", checksum.clone()));
        let always = [
            ("Content-Type", self.content_type.clone()),
            ("Content-Length", self.bytes.to_string()),
        ];
        let headers = always.into_iter().chain(checksum);
        headers
            .map(|(name, value)| (name.to_owned(), value))
            .collect::<Vec<_>>()
            .into_iter()
    }
}

impl Addresses {
    /// Of a server that is reached at `base`, such as `http://127.0.0.1:3002`.
    #[must_use]
    pub fn new(base: &str, secrets: Secrets) -> Self {
        Self {
            base: base.trim_end_matches('/').to_owned(),
            secrets,
        }
    }

    /// Where a file is sent to by PUT.
    pub(super) fn to_put(&self, upload_id: &str, announced: &Announced, expires_s: i64) -> String {
        self.address(upload_id, &put_message(upload_id, announced, expires_s), expires_s)
    }

    /// Where a file is fetched by GET.
    pub(super) fn to_get(&self, upload_id: &str, expires_s: i64) -> String {
        self.address(upload_id, &get_message(upload_id, expires_s), expires_s)
    }

    /// Whether an address allows to send a file of which this is said.
    pub(super) fn check_put(&self, shown: Shown<'_>, announced: &Announced, now_s: i64) -> Result<(), Refusal> {
        self.check(shown, now_s, |expires_s| {
            put_message(shown.upload_id, announced, expires_s)
        })
    }

    /// Whether an address allows to fetch a file.
    pub(super) fn check_get(&self, shown: Shown<'_>, now_s: i64) -> Result<(), Refusal> {
        self.check(shown, now_s, |expires_s| get_message(shown.upload_id, expires_s))
    }

    fn address(&self, upload_id: &str, message: &str, expires_s: i64) -> String {
        let signature = URL_SAFE_NO_PAD.encode(self.secrets.sign(message.as_bytes()));
        format!(
            "{}{PATH}{upload_id}?expires={expires_s}&signature={signature}",
            self.base
        )
    }

    fn check(&self, shown: Shown<'_>, now_s: i64, message: impl FnOnce(i64) -> String) -> Result<(), Refusal> {
        let denied = |reason, message: &str| Err(Refusal::new(Code::PermissionDenied, reason, message));
        let parts = of_query(shown.query, "expires").zip(of_query(shown.query, "signature"));
        let parts = parts.and_then(|(expires, signature)| {
            Some((expires.parse::<i64>().ok()?, URL_SAFE_NO_PAD.decode(signature).ok()?))
        });
        let Some((expires_s, signature)) = parts else {
            return denied("ADDRESS_INVALID", "The address is not signed. Use it as it was given.");
        };
        if !self.secrets.is_signed(message(expires_s).as_bytes(), &signature) {
            return denied(
                "ADDRESS_INVALID",
                "The address does not allow this. Use it as it was given, with its method and all required_headers.",
            );
        }
        if now_s >= expires_s {
            return denied(
                "ADDRESS_EXPIRED",
                "The address has expired: it is valid for one hour. Request a new one.",
            );
        }
        Ok(())
    }
}

fn of_query<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// No part but the last can hold a line feed.
fn put_message(upload_id: &str, announced: &Announced, expires_s: i64) -> String {
    let checksum = announced.checksum.as_deref().unwrap_or("-");
    format!(
        "PUT\n{upload_id}\n{expires_s}\n{}\n{checksum}\n{}",
        announced.bytes, announced.content_type
    )
}

fn get_message(upload_id: &str, expires_s: i64) -> String {
    format!("GET\n{upload_id}\n{expires_s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_790_000_000;

    fn addresses() -> Addresses {
        let secrets = Secrets::parse(&"s".repeat(32)).expect("a secret");
        Addresses::new("http://127.0.0.1:3002/", secrets)
    }

    fn announced() -> Announced {
        Announced::new("text/plain", 5, Some(&[7; 16]))
    }

    fn query(address: &str) -> &str {
        address.split_once('?').expect("a query").1
    }

    fn put(upload_id: &str, address: &str, announced: &Announced, now_s: i64) -> Result<(), &'static str> {
        let shown = Shown {
            upload_id,
            query: query(address),
        };
        addresses()
            .check_put(shown, announced, now_s)
            .map_err(|refusal| refusal.reason)
    }

    #[test]
    fn an_address_allows_what_was_announced_and_nothing_else() {
        let address = addresses().to_put("a", &announced(), NOW_S + 3_600);
        assert!(address.starts_with("http://127.0.0.1:3002/artifacts/a?expires="));
        assert_eq!(put("a", &address, &announced(), NOW_S), Ok(()));
        let denied = Err("ADDRESS_INVALID");
        assert_eq!(put("b", &address, &announced(), NOW_S), denied);
        let other = [
            Announced {
                bytes: 6,
                ..announced()
            },
            Announced {
                bytes: 4,
                ..announced()
            },
            Announced {
                content_type: "text/html".to_owned(),
                ..announced()
            },
            Announced {
                checksum: None,
                ..announced()
            },
            Announced::new("text/plain", 5, Some(&[8; 16])),
        ];
        for other in other {
            assert_eq!(put("a", &address, &other, NOW_S), denied, "{other:?}");
        }
    }

    #[test]
    fn an_address_counts_for_an_hour_to_the_second() {
        let address = addresses().to_put("a", &announced(), NOW_S + 3_600);
        assert_eq!(put("a", &address, &announced(), NOW_S + 3_599), Ok(()));
        assert_eq!(put("a", &address, &announced(), NOW_S + 3_600), Err("ADDRESS_EXPIRED"));
        let longer = address.replace(&(NOW_S + 3_600).to_string(), &(NOW_S + 9_999).to_string());
        assert_eq!(put("a", &longer, &announced(), NOW_S + 3_600), Err("ADDRESS_INVALID"));
    }

    #[test]
    fn an_address_is_for_one_method() {
        let to_put = addresses().to_put("a", &announced(), NOW_S + 3_600);
        let to_get = addresses().to_get("a", NOW_S + 3_600);
        let get = |address: &str| {
            let shown = Shown {
                upload_id: "a",
                query: query(address),
            };
            addresses().check_get(shown, NOW_S).map_err(|refusal| refusal.reason)
        };
        assert_eq!(get(&to_get), Ok(()));
        assert_eq!(get(&to_put), Err("ADDRESS_INVALID"));
        assert_eq!(put("a", &to_get, &announced(), NOW_S), Err("ADDRESS_INVALID"));
        for broken in [
            "x?",
            "x?expires=1",
            "x?expires=z&signature=AA",
            "x?signature=&expires=",
            "x?expires=9&signature=\u{e9}",
        ] {
            assert_eq!(get(broken), Err("ADDRESS_INVALID"), "{broken}");
        }
    }

    #[test]
    fn the_headers_say_type_length_and_checksum() {
        let headers: Vec<(String, String)> = announced().headers().collect();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Content-Type", "Content-Length", "Content-MD5"]);
        assert_eq!(headers[2].1, "BwcHBwcHBwcHBwcHBwcHBw==");
        assert_eq!(Announced::new("a/b", 0, None).headers().count(), 2);
    }
}
