//! Resume tokens: signed, for one run, for seven days, and for one use, since each carries a generation of which the
//! store knows the newest. A JSON Web Token with HMAC-SHA256, and no other algorithm. The clock is a parameter.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::refusal::{Code, Refusal};
use crate::secrets::Secrets;

/// How long a token counts.
pub const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// The only header that is made and taken: a token says nothing about how it is to be checked.
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The run that it resumes.
    pub run_id: String,
    /// When it was made, in seconds since 1970.
    pub created_at: i64,
    /// From when on it does not count, in seconds since 1970.
    pub exp: i64,
    /// The highest sequence without a gap before it, when it was made: for information.
    pub sequence_checkpoint: i64,
    /// Counts the tokens of a run. Only the newest resumes it.
    pub generation: i64,
}

/// Why a token does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// It was not made by this service, or for another run.
    #[error("the resume token is none of this run")]
    Invalid,
    /// Its time is over.
    #[error("the resume token has expired")]
    Expired,
    /// There is a newer one: it was used, or the run was opened again since.
    #[error("the resume token was used, or a newer one was issued")]
    Used,
}

impl From<TokenFault> for Refusal {
    fn from(fault: TokenFault) -> Self {
        let (reason, advice) = match fault {
            TokenFault::Invalid => (
                "RESUME_TOKEN_INVALID",
                "send the resume_token of the last InitRun answer of this run, unchanged",
            ),
            TokenFault::Expired => (
                "RESUME_TOKEN_EXPIRED",
                "it counts for 7 days; start a new run and replay what is left under it",
            ),
            TokenFault::Used => (
                "RESUME_TOKEN_USED",
                "only the token of the last InitRun answer counts; is another process going on with this run?",
            ),
        };
        Self::new(Code::PermissionDenied, reason, format!("{fault}: {advice}")).at("resume_token")
    }
}

/// A token for a run, made now.
#[must_use]
pub fn issue(secrets: &Secrets, run_id: &str, generation: i64, sequence_checkpoint: i64, now_s: i64) -> String {
    let claims = Claims {
        run_id: run_id.to_owned(),
        created_at: now_s,
        exp: now_s.saturating_add(LIFETIME.as_secs().cast_signed()),
        sequence_checkpoint,
        generation,
    };
    let claims = serde_json::to_vec(&claims).expect("numbers and a text are JSON");
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(secrets.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// What a token says, if it counts for this run now. Whether its generation is the newest is the store's to say.
///
/// # Errors
/// A token that is none of this run, or whose time is over.
pub fn read(secrets: &Secrets, token: &str, run_id: &str, now_s: i64) -> Result<Claims, TokenFault> {
    let claims = signed_claims(secrets, token).ok_or(TokenFault::Invalid)?;
    if claims.run_id != run_id {
        return Err(TokenFault::Invalid);
    }
    match now_s < claims.exp {
        true => Ok(claims),
        false => Err(TokenFault::Expired),
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

    #[test]
    fn a_token_counts_for_its_run_for_seven_days() {
        let secrets = secrets("a");
        let token = issue(&secrets, "run", 3, 17, NOW);
        for (run_id, now, expected) in [
            ("run", NOW, Ok((3, 17))),
            ("run", NOW + WEEK - 1, Ok((3, 17))),
            ("run", NOW + WEEK, Err(TokenFault::Expired)),
            ("other", NOW, Err(TokenFault::Invalid)),
        ] {
            let read = read(&secrets, &token, run_id, now);
            let said = read.map(|claims| (claims.generation, claims.sequence_checkpoint));
            assert_eq!(said, expected, "{run_id} {now}");
        }
    }

    #[test]
    fn a_forged_token_never_resumes() {
        let secrets = secrets("a");
        let token = issue(&secrets, "run", 3, 17, NOW);
        let parts: Vec<&str> = token.split('.').collect();
        let claims = |run: &str| {
            let text = format!(
                r#"{{"run_id":"{run}","created_at":0,"exp":9999999999,"sequence_checkpoint":0,"generation":3}}"#
            );
            URL_SAFE_NO_PAD.encode(text)
        };
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
        for forged in [
            String::new(),
            "resume-run".to_owned(),
            "..".to_owned(),
            "\u{20ac}.\u{20ac}.\u{20ac}".to_owned(),
            issue(&self::secrets("b"), "run", 3, 17, NOW),
            format!("{none}.{}.", claims("run")),
            format!("{none}.{}.{}", parts[1], parts[2]),
            format!("{}.{}.{}", parts[0], claims("run"), parts[2]),
            format!("{}.{}.", parts[0], parts[1]),
            format!("{}.{}.{}=", parts[0], parts[1], parts[2]),
            token[..token.len() - 1].to_owned(),
        ] {
            assert_eq!(read(&secrets, &forged, "run", NOW).err(), Some(TokenFault::Invalid), "{forged}");
        }
        // Each character of it counts.
        for at in 0..token.len() {
            let mut other = token.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).expect("ASCII");
            let read = read(&secrets, &other, "run", NOW);
            assert!(other == token || read.is_err(), "{at}");
        }
    }

    #[test]
    fn a_refusal_shows_nothing_of_the_token() {
        for fault in [TokenFault::Invalid, TokenFault::Expired, TokenFault::Used] {
            let refusal = Refusal::from(fault);
            assert_eq!(refusal.code, Code::PermissionDenied);
            assert!(!refusal.message.contains("eyJ"));
        }
    }
}
