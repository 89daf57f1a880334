//! Whether an upload can be finalized, and which ones are swept. Pure.

use super::upload::{Checksum, UPLOAD_LIFETIME, hex};
use crate::refusal::{Code, Refusal};

/// What is known of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It can be sent and finalized.
    Open,
    /// It is an artifact.
    Finalized,
    /// It was rejected, or came too late; its files are deleted.
    Dropped,
}

impl State {
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::Open => 1,
            Self::Finalized => 2,
            Self::Dropped => 3,
        }
    }

    pub(super) fn of_number(number: i64) -> Option<Self> {
        let all = [Self::Open, Self::Finalized, Self::Dropped];
        all.into_iter().find(|state| state.number() == number)
    }
}

/// A size and a checksum: announced, claimed or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) bytes: u64,
    pub(super) checksum: Checksum,
}

/// What is to become of an upload that its client says is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is what was announced: make it an artifact.
    Finalize,
    /// It is an artifact already: answer what is stored.
    Stored,
    /// It is not what was announced: drop it and delete its files.
    Reject(Refusal),
    /// There is nothing to finalize.
    Refuse(Refusal),
}

/// Judges an upload that was announced with a size and perhaps a checksum, of which its client claims the content, by
/// the files that were received.
pub(super) fn judge(
    upload_id: &str,
    state: State,
    announced: (u64, Option<Checksum>),
    claimed: Content,
    received: &[Content],
) -> Verdict {
    match state {
        State::Open => {}
        State::Dropped => return Verdict::Refuse(unknown(upload_id)),
        State::Finalized if announced == (claimed.bytes, Some(claimed.checksum)) => return Verdict::Stored,
        State::Finalized => {
            let message = format!("Upload {upload_id} is finalized with another size or MD5, which stay.");
            return Verdict::Refuse(Refusal::new(Code::FailedPrecondition, "UPLOAD_FINALIZED", message));
        }
    }
    let fault = if received.is_empty() {
        Some((
            "ARTIFACT_MISSING",
            "upload_id",
            "nothing was sent to its address".to_owned(),
        ))
    } else if announced.0 != claimed.bytes {
        let why = format!("{} bytes were announced and {} are claimed", announced.0, claimed.bytes);
        Some(("ARTIFACT_SIZE_MISMATCH", "actual_size_bytes", why))
    } else if announced.1.is_some_and(|checksum| checksum != claimed.checksum) {
        let why = "another MD5 was announced than is claimed".to_owned();
        Some(("ARTIFACT_MD5_MISMATCH", "md5_checksum", why))
    } else if !received.iter().any(|content| content.bytes == claimed.bytes) {
        let why = format!("the file that was sent does not have {} bytes", claimed.bytes);
        Some(("ARTIFACT_SIZE_MISMATCH", "actual_size_bytes", why))
    } else if !received.contains(&claimed) {
        let why = format!(
            "the file that was sent does not have the MD5 {}",
            hex(&claimed.checksum)
        );
        Some(("ARTIFACT_MD5_MISMATCH", "md5_checksum", why))
    } else {
        None
    };
    fault.map_or(Verdict::Finalize, |(reason, field, why)| {
        let message =
            format!("Upload {upload_id} is rejected and deleted: {why}. Open a new upload and send the file.");
        Verdict::Reject(Refusal::new(Code::FailedPrecondition, reason, message).at(field))
    })
}

/// Uploads that were opened before this time are swept.
pub(super) fn swept_before(now: i64) -> i64 {
    let lifetime = i64::try_from(UPLOAD_LIFETIME.as_nanos()).unwrap_or(i64::MAX);
    now.saturating_sub(lifetime)
}

/// No such upload.
pub(super) fn unknown(upload_id: &str) -> Refusal {
    let message = format!(
        "There is no upload {upload_id:?}: it was never opened, was rejected, or was not finalized within 24 hours. \
         Open a new one."
    );
    Refusal::new(Code::NotFound, "UPLOAD_NOT_FOUND", message).at("upload_id")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: Content = Content {
        bytes: 5,
        checksum: [1; 16],
    };

    fn of(bytes: u64, checksum: u8) -> Content {
        Content {
            bytes,
            checksum: [checksum; 16],
        }
    }

    fn reason(announced: (u64, Option<Checksum>), claimed: Content, received: &[Content]) -> &'static str {
        match judge("u", State::Open, announced, claimed, received) {
            Verdict::Finalize => "finalized",
            Verdict::Reject(refusal) => refusal.reason,
            Verdict::Stored | Verdict::Refuse(_) => "neither",
        }
    }

    #[test]
    fn an_upload_is_finalized_where_announced_claimed_and_received_agree() {
        for announced in [(5, None), (5, Some([1; 16]))] {
            assert_eq!(reason(announced, RIGHT, &[RIGHT]), "finalized");
            assert_eq!(reason(announced, RIGHT, &[of(5, 9), RIGHT]), "finalized");
        }
    }

    #[test]
    fn every_mismatch_rejects() {
        let announced = (5, Some([1; 16]));
        assert_eq!(reason(announced, RIGHT, &[]), "ARTIFACT_MISSING");
        for bytes in [4, 6] {
            assert_eq!(
                reason(announced, of(bytes, 1), &[of(bytes, 1)]),
                "ARTIFACT_SIZE_MISMATCH"
            );
            assert_eq!(reason(announced, RIGHT, &[of(bytes, 1)]), "ARTIFACT_SIZE_MISMATCH");
        }
        assert_eq!(reason(announced, of(5, 2), &[of(5, 2)]), "ARTIFACT_MD5_MISMATCH");
        assert_eq!(reason((5, None), RIGHT, &[of(5, 2)]), "ARTIFACT_MD5_MISMATCH");
    }

    #[test]
    fn finalizing_again_answers_what_is_stored_and_a_dropped_upload_is_gone() {
        let again = judge("u", State::Finalized, (5, Some([1; 16])), RIGHT, &[]);
        assert_eq!(again, Verdict::Stored);
        for other in [of(5, 2), of(6, 1)] {
            let refused = judge("u", State::Finalized, (5, Some([1; 16])), other, &[other]);
            assert!(matches!(refused, Verdict::Refuse(_)), "{refused:?}");
        }
        assert_eq!(
            judge("u", State::Dropped, (5, None), RIGHT, &[RIGHT]),
            Verdict::Refuse(unknown("u"))
        );
    }

    #[test]
    fn uploads_are_swept_after_a_day() {
        const DAY: i64 = 24 * 3600 * 1_000_000_000;
        assert_eq!(swept_before(DAY + 5), 5);
        assert_eq!(swept_before(i64::MIN), i64::MIN);
    }
}
