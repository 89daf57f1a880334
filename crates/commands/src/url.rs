//! Addresses of servers as flags take them: over HTTP, to somebody.

use std::fmt::Display;

use axum::http::Uri;

use crate::error::{CommandError, CommandResult};

/// Refuses what is no address. `flag` names where it is from.
///
/// # Errors
/// One without a host, or of another scheme than http and https.
pub(crate) fn check(flag: impl Display, url: &str) -> CommandResult {
    let parsed = url.parse::<Uri>();
    if parsed.is_ok_and(|url| matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some()) {
        return Ok(());
    }
    let wrong = CommandError::usage(format_args!("{flag}: {url:?} is not an http:// or https:// URL"));
    Err(wrong.hint("write it like https://region.example.com:6443"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host() {
        for url in ["http://127.0.0.1:6482", "https://region/prefix", "http://[::1]:1/a=b"] {
            assert!(check("--url", url).is_ok(), "{url}");
        }
        for url in ["", "nonsense", "region:6443", "ftp://region", "http://", "http://a b"] {
            let refused = check("--url", url).expect_err("refused").to_string();
            let why = format!("error: --url: {url:?} is not an http:// or https:// URL\n");
            assert!(refused.starts_with(&why), "{refused}");
        }
    }
}
