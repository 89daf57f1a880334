//! Resume tokens: signed, for one run, for seven days, and until a newer one was used, since each carries a generation
//! and the store knows which of them count. A JSON Web Token with HMAC-SHA256, and no other algorithm. The clock is a
//! parameter.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::domain::{Opened, PresentedToken, RunId};
use crate::secrets::Secrets;

/// How long a token counts.
pub const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// The only header that is made and taken: a token says nothing about how it is to be checked.
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

/// What a token says.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    /// The run that it resumes.
    run_id: String,
    /// When it was made, in seconds since 1970.
    created_at: i64,
    /// From when on it does not count, in seconds since 1970.
    exp: i64,
    /// The highest sequence without a gap before it, when it was made: for information.
    sequence_checkpoint: i64,
    /// Counts the tokens of a run.
    generation: i64,
}

/// A token for a run that was opened, made now.
#[must_use]
pub(crate) fn issue(secrets: &Secrets, opened: &Opened, now_s: i64) -> String {
    let claims = Claims {
        run_id: opened.run.as_str().to_owned(),
        created_at: now_s,
        exp: now_s.saturating_add(LIFETIME.as_secs().cast_signed()),
        sequence_checkpoint: opened.checkpoint,
        generation: opened.generation,
    };
    let claims = serde_json::to_vec(&claims).expect("numbers and a text are JSON");
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(secrets.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// What a request shows as its token, now. Whether it is the run's, and counts, is the store's to say.
#[must_use]
pub fn presented(secrets: &Secrets, token: Option<&str>, now_s: i64) -> PresentedToken {
    let Some(token) = token.filter(|token| !token.is_empty()) else {
        return PresentedToken::Absent;
    };
    match signed_claims(secrets, token) {
        None => PresentedToken::Invalid,
        Some(claims) if now_s >= claims.exp => PresentedToken::Expired,
        Some(claims) => PresentedToken::Signed {
            run: RunId::new(claims.run_id),
            generation: claims.generation,
        },
    }
}

/// Nothing of a token is looked at before its signature.
fn signed_claims(secrets: &Secrets, token: &str) -> Option<Claims> {
    let (signed, signature) = token.rsplit_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    if !secrets.is_signed(signed.as_bytes(), &signature) {
        return None;
    }
    let (header, claims) = signed.split_once('.')?;
    if URL_SAFE_NO_PAD.decode(header).ok()? != HEADER.as_bytes() {
        return None;
    }
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;
    const WEEK: i64 = 7 * 24 * 3600;

    fn secrets(letter: &str) -> Secrets {
        Secrets::parse(&letter.repeat(32)).expect("a secret")
    }

    fn opened() -> Opened {
        Opened {
            run: RunId::new("run"),
            generation: 3,
            checkpoint: 17,
            resumed: false,
            warnings: Vec::new(),
            server_time: 0,
        }
    }

    #[test]
    fn a_token_counts_for_its_run_for_seven_days() {
        let secrets = secrets("a");
        let token = issue(&secrets, &opened(), NOW);
        let signed = PresentedToken::Signed {
            run: RunId::new("run"),
            generation: 3,
        };
        for (now, expected) in [
            (NOW, &signed),
            (NOW + WEEK - 1, &signed),
            (NOW + WEEK, &PresentedToken::Expired),
        ] {
            assert_eq!(&presented(&secrets, Some(&token), now), expected, "{now}");
        }
        for none in [None, Some("")] {
            assert_eq!(presented(&secrets, none, NOW), PresentedToken::Absent);
        }
    }

    #[test]
    fn a_token_tells_the_checkpoint_and_nothing_of_the_secret() {
        let token = issue(&secrets("a"), &opened(), NOW);
        let claims = token.split('.').nth(1).expect("three parts");
        let claims = URL_SAFE_NO_PAD.decode(claims).expect("base64");
        let claims: serde_json::Value = serde_json::from_slice(&claims).expect("JSON");
        let expected = serde_json::json!({
            "run_id": "run", "created_at": NOW, "exp": NOW + WEEK, "sequence_checkpoint": 17, "generation": 3,
        });
        assert_eq!(claims, expected);
    }

    #[test]
    fn a_forged_token_never_resumes() {
        let secrets = secrets("a");
        let token = issue(&secrets, &opened(), NOW);
        let parts: Vec<&str> = token.split('.').collect();
        let claims = URL_SAFE_NO_PAD
            .encode(r#"{"run_id":"run","created_at":0,"exp":9999999999,"sequence_checkpoint":0,"generation":3}"#);
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
        for forged in [
            "resume-run".to_owned(),
            "..".to_owned(),
            "\u{20ac}.\u{20ac}.\u{20ac}".to_owned(),
            issue(&self::secrets("b"), &opened(), NOW),
            format!("{none}.{claims}."),
            format!("{none}.{}.{}", parts[1], parts[2]),
            format!("{}.{claims}.{}", parts[0], parts[2]),
            format!("{}.{}.", parts[0], parts[1]),
            format!("{}.{}.{}=", parts[0], parts[1], parts[2]),
            token[..token.len() - 1].to_owned(),
        ] {
            assert_eq!(
                presented(&secrets, Some(&forged), NOW),
                PresentedToken::Invalid,
                "{forged}"
            );
        }
        // Each character of it counts.
        for at in 0..token.len() {
            let mut other = token.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).expect("ASCII");
            let presented = presented(&secrets, Some(&other), NOW);
            assert!(other == token || presented == PresentedToken::Invalid, "{at}");
        }
    }
}
