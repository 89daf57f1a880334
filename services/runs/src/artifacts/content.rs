//! Contents over HTTP: sent by PUT, fetched by GET, each by its signed address and without a key.

use axum::body::{Body, Bytes};
use bytes::BytesMut;
use futures::stream;
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, SeekFrom, Take};

use super::address::{Announced, PATH, Shown};
use super::files::ReceiveError;
use super::range::{Part, part};
use super::rows::Upload;
use super::shelf::{Artifacts, disk};
use super::upload::{Checksum, hex, id};
use super::verdict::{State, unknown};
use crate::limits;
use crate::refusal::{Code, Refusal};

const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
/// Bytes of a file that are read at once.
const READ_BYTES: usize = 64 * 1024;

impl Artifacts {
    /// Whether a request is for this.
    #[must_use]
    pub fn is_address(path: &str) -> bool {
        path.starts_with(PATH)
    }

    /// Takes in or hands out a content.
    ///
    /// # Errors
    /// An address that does not allow it or has expired, an upload that is not there, and a file that is not what was
    /// announced.
    pub async fn serve(&self, request: Request<Body>) -> Result<Response<Body>, Refusal> {
        match *request.method() {
            Method::PUT => self.put(request).await,
            Method::GET | Method::HEAD => self.get(request).await,
            _ => {
                let message = "The address takes PUT, GET or HEAD, as it was given for.";
                Err(Refusal::new(Code::InvalidArgument, "METHOD_NOT_ALLOWED", message))
            }
        }
    }

    async fn put(&self, request: Request<Body>) -> Result<Response<Body>, Refusal> {
        let (head, body) = request.into_parts();
        let upload_id = upload_id(head.uri.path())?;
        let announced = announced(&head.headers)?;
        let shown = Shown {
            upload_id: &upload_id,
            query: head.uri.query().unwrap_or_default(),
        };
        self.addresses.check_put(shown, &announced, self.now_s())?;
        let upload = self.open_upload(&upload_id).await?;
        let wanted = (upload.bytes, upload.checksum);
        let received = self
            .files
            .receive(&upload.id, rand::random(), wanted, body.into_data_stream())
            .await;
        let content = received.map_err(refused)?;
        // It may have been finalized or swept meanwhile.
        self.open_upload(&upload_id).await?;
        let mut response = Response::new(Body::empty());
        response.headers_mut().insert(header::ETAG, etag(&content.checksum)?);
        Ok(response)
    }

    async fn get(&self, request: Request<Body>) -> Result<Response<Body>, Refusal> {
        let upload_id = upload_id(request.uri().path())?;
        let shown = Shown {
            upload_id: &upload_id,
            query: request.uri().query().unwrap_or_default(),
        };
        self.addresses.check_get(shown, self.now_s())?;
        let artifact = self.upload(&upload_id).await?;
        let checksum = match (artifact.state, artifact.checksum) {
            (State::Finalized, Some(checksum)) => checksum,
            _ => return Err(unknown(&upload_id)),
        };
        let file = self.files.read(&artifact.id, &checksum).await.map_err(disk)?;
        let etag = etag(&checksum)?;
        let part = part(range_of(request.headers(), &etag), artifact.bytes);
        let content = match (request.method(), part) {
            (&Method::HEAD, _) | (_, Part::Unsatisfiable) => Body::empty(),
            (_, Part::Whole) => contents(file, 0, artifact.bytes).await.map_err(disk)?,
            (_, Part::Bytes { first, last }) => contents(file, first, last - first + 1).await.map_err(disk)?,
        };
        respond(&artifact, etag, part, content)
    }

    /// An upload that can be sent. Of one that cannot be sent any more, what came too late is deleted, but not the
    /// artifact: its state never changes back. While an upload is open, or nobody knows, nothing is deleted.
    async fn open_upload(&self, upload_id: &str) -> Result<Upload, Refusal> {
        let (kept, refusal) = match self.upload(upload_id).await {
            Ok(upload) => match (upload.state, upload.checksum) {
                (State::Open, _) => return Ok(upload),
                (State::Dropped, _) => (None, unknown(upload_id)),
                (State::Finalized, None) => return Err(finalized(upload_id)),
                (State::Finalized, checksum) => (checksum, finalized(upload_id)),
            },
            Err(refusal) if refusal.code == Code::NotFound => (None, refusal),
            Err(refusal) => return Err(refusal),
        };
        self.files.remove(upload_id, kept.as_ref()).await.map_err(disk)?;
        Err(refusal)
    }
}

fn finalized(upload_id: &str) -> Refusal {
    let message = format!("Upload {upload_id} is finalized: an artifact never changes. Open a new upload.");
    Refusal::new(Code::FailedPrecondition, "UPLOAD_FINALIZED", message)
}

fn upload_id(path: &str) -> Result<String, Refusal> {
    let text = path.strip_prefix(PATH).unwrap_or_default();
    id(text).ok_or_else(|| unknown(text))
}

/// What the headers say of the file. What is missing is not what was signed.
fn announced(headers: &HeaderMap) -> Result<Announced, Refusal> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let length = text(&header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let bytes = length.ok_or_else(|| {
        let message = "The request has no Content-Length; send all required_headers, and no chunked body.";
        Refusal::new(Code::InvalidArgument, "LENGTH_REQUIRED", message)
    })?;
    if bytes > limits::ARTIFACT_BYTES.max as u64 {
        let message = format!("An artifact has at most {} bytes.", limits::ARTIFACT_BYTES.max);
        return Err(Refusal::new(Code::InvalidArgument, "TOO_LARGE", message));
    }
    Ok(Announced {
        content_type: text(&header::CONTENT_TYPE).unwrap_or_default().to_owned(),
        bytes,
        checksum: text(&CONTENT_MD5).map(str::to_owned),
    })
}

fn refused(error: ReceiveError) -> Refusal {
    let message = format!("{error}. Nothing of it was stored: send it again.");
    match error {
        ReceiveError::Disk(error) => disk(error),
        ReceiveError::Size { .. } => Refusal::new(Code::InvalidArgument, "ARTIFACT_SIZE_MISMATCH", message),
        ReceiveError::Checksum(_) => Refusal::new(Code::InvalidArgument, "ARTIFACT_MD5_MISMATCH", message),
        ReceiveError::BrokenOff(_) => Refusal::new(Code::InvalidArgument, "BODY_BROKEN", message),
    }
}

fn etag(checksum: &Checksum) -> Result<http::HeaderValue, Refusal> {
    value(&format!("\"{}\"", hex(checksum)))
}

fn value(text: &str) -> Result<http::HeaderValue, Refusal> {
    http::HeaderValue::from_str(text).map_err(|_| {
        Refusal::new(
            Code::Internal,
            "HEADER",
            "The type of the artifact is not a valid header value.",
        )
    })
}

/// The range that is asked for; none if it is one of another content.
fn range_of<'h>(headers: &'h HeaderMap, etag: &http::HeaderValue) -> Option<&'h str> {
    let is_of_this = headers.get(header::IF_RANGE).is_none_or(|of| of == etag);
    headers.get(header::RANGE).filter(|_| is_of_this)?.to_str().ok()
}

/// An artifact is what somebody sent: a browser saves it and never runs it as a page of this service.
fn respond(artifact: &Upload, etag: http::HeaderValue, part: Part, content: Body) -> Result<Response<Body>, Refusal> {
    let name = artifact.name.rsplit('/').next().unwrap_or_default();
    let disposition = format!(
        "attachment; filename*=UTF-8''{}",
        utf8_percent_encode(name, NON_ALPHANUMERIC)
    );
    let size = artifact.bytes;
    let (status, length, range) = match part {
        Part::Whole => (StatusCode::OK, size, None),
        Part::Bytes { first, last } => {
            let range = format!("bytes {first}-{last}/{size}");
            (StatusCode::PARTIAL_CONTENT, last - first + 1, Some(range))
        }
        Part::Unsatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, 0, Some(format!("bytes */{size}"))),
    };
    let mut response = Response::new(content);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, value(&artifact.mime_type)?);
    headers.insert(header::CONTENT_LENGTH, length.into());
    headers.insert(header::ACCEPT_RANGES, value("bytes")?);
    if let Some(range) = range {
        headers.insert(header::CONTENT_RANGE, value(&range)?);
    }
    headers.insert(header::ETAG, etag);
    headers.insert(header::CONTENT_DISPOSITION, value(&disposition)?);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, value("nosniff")?);
    headers.insert(header::CONTENT_SECURITY_POLICY, value("sandbox; default-src 'none'")?);
    headers.insert(header::CACHE_CONTROL, value("private, no-store")?);
    Ok(response)
}

/// So many bytes of a file from a place on.
async fn contents(mut file: File, first: u64, bytes: u64) -> std::io::Result<Body> {
    if first > 0 {
        file.seek(SeekFrom::Start(first)).await?;
    }
    let read = async |mut file: Take<File>| -> std::io::Result<Option<(Bytes, Take<File>)>> {
        let mut data = BytesMut::with_capacity(READ_BYTES);
        match file.read_buf(&mut data).await? {
            0 => Ok(None),
            _ => Ok(Some((data.freeze(), file))),
        }
    };
    Ok(Body::from_stream(stream::try_unfold(file.take(bytes), read)))
}
