//! An upload as it is announced.

use std::time::Duration;

use md5::digest::Output;
use uuid::Uuid;

use crate::domain::RunId;
use crate::limits;
use crate::refusal::{Code, Refusal};
use crate::validate;
use crate::wire::v1::{ArtifactMetadata, CreateArtifactUploadRequest};

/// How long an upload can be finalized. Later it is deleted.
pub const UPLOAD_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// The type of a file of which nothing is said.
const MIME_TYPE_DEFAULT: &str = "application/octet-stream";

/// The MD5 of a file.
pub(super) type Checksum = [u8; 16];

/// An upload that is announced, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewUpload {
    pub(super) run: RunId,
    pub(super) name: String,
    /// As the message numbers it.
    pub(super) sort: i32,
    pub(super) mime_type: String,
    pub(super) step: Option<i64>,
    pub(super) bytes: u64,
    pub(super) checksum: Option<Checksum>,
}

impl NewUpload {
    /// Of a request.
    pub(super) fn of(request: CreateArtifactUploadRequest) -> Result<Self, Refusal> {
        let run = validate::run_id(request.run_id.as_ref())?;
        let metadata = request.metadata.unwrap_or_default();
        validate::artifact_name("metadata.name", &metadata.name)?;
        if metadata.step.is_some_and(|step| step < 0) {
            let message = "metadata.step is negative: steps count from 0";
            return Err(invalid("OUT_OF_RANGE", message).at("metadata.step"));
        }
        Ok(Self {
            run,
            bytes: size(request.expected_size_bytes, &metadata)?,
            checksum: announced("metadata.md5_checksum", &metadata.md5_checksum)?,
            mime_type: mime_type(&metadata.mime_type)?,
            name: metadata.name,
            sort: metadata.r#type,
            step: metadata.step,
        })
    }
}

/// The id of an upload, if it is one. It has the characters of a UUID alone, so that a file can be called by it.
pub(super) fn id(text: &str) -> Option<String> {
    let uuid = Uuid::try_parse(text).ok()?.hyphenated().to_string();
    (uuid == text).then_some(uuid)
}

/// A checksum that has to be there.
pub(super) fn checksum(field: &str, hex: &str) -> Result<Checksum, Refusal> {
    let checksum = announced(field, hex)?;
    checksum.ok_or_else(|| {
        let message = format!("{field} is missing: send the MD5 of the file in hexadecimal");
        invalid("REQUIRED", message).at(field)
    })
}

/// A checksum in hexadecimal.
pub(super) fn hex(checksum: &Checksum) -> String {
    checksum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A checksum of what was hashed.
pub(super) fn of_hash(hash: Output<md5::Md5>) -> Checksum {
    hash.into()
}

fn announced(field: &str, hex: &str) -> Result<Option<Checksum>, Refusal> {
    if hex.is_empty() {
        return Ok(None);
    }
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    if hex.len() != 32 || digits.len() != 32 {
        let message = format!("{field}: an MD5 has 32 hexadecimal digits");
        return Err(invalid("INVALID_CHECKSUM", message).at(field));
    }
    let mut checksum = Checksum::default();
    for (byte, digits) in checksum.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digits[0] << 4 | digits[1];
    }
    Ok(Some(checksum))
}

/// The size is said twice; where only one says it, that one counts.
fn size(expected: i64, metadata: &ArtifactMetadata) -> Result<u64, Refusal> {
    let field = "expected_size_bytes";
    let stated = match (expected, metadata.size_bytes) {
        (0, stated) => stated,
        (expected, 0) => expected,
        (expected, stated) if expected == stated => expected,
        (expected, stated) => {
            let message =
                format!("{field} is {expected} and metadata.size_bytes is {stated}; send the size of the file");
            return Err(invalid("SIZE_MISMATCH", message).at(field));
        }
    };
    let bytes = u64::try_from(stated).map_err(|_| {
        let message = format!("{field} is {stated}; a file has 0 bytes or more");
        invalid("OUT_OF_RANGE", message).at(field)
    })?;
    let max = limits::ARTIFACT_BYTES.max as u64;
    if bytes > max {
        let message = format!("{field} is {bytes}; an artifact has at most {max} bytes, split the file");
        return Err(invalid("TOO_LARGE", message).at(field));
    }
    Ok(bytes)
}

/// A type that can be a header, so that it comes back as it was sent.
fn mime_type(sent: &str) -> Result<String, Refusal> {
    if sent.is_empty() {
        return Ok(MIME_TYPE_DEFAULT.to_owned());
    }
    let is_printable = sent.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && sent.trim() == sent;
    if !limits::MIME_TYPE.holds(sent) || !is_printable || !sent.contains('/') {
        let message = format!(
            "metadata.mime_type is not a type such as text/plain of at most {} characters",
            limits::MIME_TYPE.max
        );
        return Err(invalid("INVALID_MIME_TYPE", message).at("metadata.mime_type"));
    }
    Ok(sent.to_owned())
}

fn invalid(reason: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(Code::InvalidArgument, reason, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::v1;

    fn request() -> CreateArtifactUploadRequest {
        CreateArtifactUploadRequest {
            run_id: Some(v1::RunId {
                value: "run".to_owned(),
            }),
            metadata: Some(ArtifactMetadata {
                name: "models/best.pt".to_owned(),
                ..ArtifactMetadata::default()
            }),
            expected_size_bytes: 5,
        }
    }

    fn with(change: impl FnOnce(&mut ArtifactMetadata)) -> Result<NewUpload, Refusal> {
        let mut request = request();
        change(request.metadata.as_mut().expect("metadata"));
        NewUpload::of(request)
    }

    #[test]
    fn a_name_that_would_mislead_as_a_path_is_refused() {
        for name in [
            "../secret",
            "/etc/passwd",
            "a//b",
            "a/../b",
            "a\0b",
            "",
            ".",
            "a\\b",
            "a/",
        ] {
            let refused = with(|metadata| metadata.name = name.to_owned());
            assert_eq!(
                refused.map_err(|refusal| refusal.field),
                Err("metadata.name".to_owned()),
                "{name:?}"
            );
        }
        assert!(with(|metadata| metadata.name = "modèle \u{1f600}/é".to_owned()).is_ok());
    }

    #[test]
    fn an_artifact_has_at_most_five_gibibytes() {
        let max = 5_i64 << 30;
        let of = |expected_size_bytes| {
            NewUpload::of(CreateArtifactUploadRequest {
                expected_size_bytes,
                ..request()
            })
        };
        assert_eq!(of(max - 1).map(|upload| upload.bytes), Ok(max as u64 - 1));
        assert_eq!(of(max).map(|upload| upload.bytes), Ok(max as u64));
        for wrong in [max + 1, -1, i64::MIN] {
            assert_eq!(
                of(wrong).map_err(|refusal| refusal.field),
                Err("expected_size_bytes".to_owned())
            );
        }
        assert!(with(|metadata| metadata.size_bytes = 6).is_err());
        assert_eq!(
            with(|metadata| metadata.size_bytes = 5).map(|upload| upload.bytes),
            Ok(5)
        );
    }

    #[test]
    fn checksums_are_hexadecimal_in_either_case() {
        let known = "0cc175b9c0f1b6a831c399e269772661";
        let upper = with(|metadata| metadata.md5_checksum = known.to_uppercase()).expect("an upload");
        assert_eq!(upper.checksum.map(|checksum| hex(&checksum)), Some(known.to_owned()));
        for wrong in [
            "0cc1",
            "zcc175b9c0f1b6a831c399e269772661",
            "\u{20ac}0cc175b9c0f1b6a831c399e269772",
        ] {
            assert!(
                with(|metadata| metadata.md5_checksum = wrong.to_owned()).is_err(),
                "{wrong:?}"
            );
        }
        assert_eq!(
            checksum("md5_checksum", "").map_err(|refusal| refusal.reason),
            Err("REQUIRED")
        );
    }

    #[test]
    fn a_type_that_is_no_header_is_refused() {
        assert_eq!(
            with(|_| ()).map(|upload| upload.mime_type),
            Ok(MIME_TYPE_DEFAULT.to_owned())
        );
        for wrong in ["text", "text/plain\r\nX: y", "t\u{e9}xt/plain", " text/plain"] {
            assert!(
                with(|metadata| metadata.mime_type = wrong.to_owned()).is_err(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn an_id_is_a_uuid_and_nothing_else() {
        let uuid = "0190b3a0-1111-7222-8333-444455556666";
        assert_eq!(id(uuid), Some(uuid.to_owned()));
        for wrong in [
            "../x",
            "",
            "0190B3A0-1111-7222-8333-444455556666",
            "0190b3a0111172228333444455556666",
        ] {
            assert_eq!(id(wrong), None, "{wrong:?}");
        }
    }
}
