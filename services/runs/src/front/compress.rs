//! Answers over REST as gzip, for clients that take it: piece by piece, so that a large answer takes little memory more
//! and no thread for long.

use std::io::Write as _;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, header};

/// Below this, an answer fits a packet as it is.
const BYTES_MIN: u64 = 1024;
/// What is packed before others get a turn.
const PIECE_BYTES: usize = 64 * 1024;

/// Whether a client takes gzip. <https://www.rfc-editor.org/rfc/rfc9110#section-12.5.3>
pub(super) fn is_taken(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        is_gzip && weight.is_none_or(|weight| weight.parse().is_ok_and(|weight: f32| weight > 0.0))
    })
}

/// The answer as gzip, unless it is small.
pub(super) fn packed(mut response: Response) -> Response {
    let size = response.body().size_hint().exact();
    if size.is_some_and(|bytes| bytes < BYTES_MIN) || response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    response.map(|body| {
        let packer = Packer {
            body: body.into_data_stream(),
            rest: Bytes::new(),
            encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())),
        };
        Body::from_stream(stream::try_unfold(packer, Packer::next))
    })
}

struct Packer {
    body: BodyDataStream,
    rest: Bytes,
    /// None once the trailer was handed out.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Packer {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, axum::Error> {
        let Some(mut encoder) = self.encoder.take() else {
            return Ok(None);
        };
        loop {
            if self.rest.is_empty() {
                match self.body.next().await {
                    Some(data) => self.rest = data?,
                    None => {
                        let end = encoder.finish().map_err(axum::Error::new)?;
                        return Ok(Some((end.into(), self)));
                    }
                }
            }
            let piece = self.rest.split_to(self.rest.len().min(PIECE_BYTES));
            encoder.write_all(&piece).map_err(axum::Error::new)?;
            let packed = std::mem::take(encoder.get_mut());
            if !packed.is_empty() {
                self.encoder = Some(encoder);
                return Ok(Some((packed.into(), self)));
            }
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn gzip_is_sent_to_those_alone_that_take_it() {
        for (accepted, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5, br", true),
            ("gzip; q=1.0", true),
            ("gzip;q=0", false),
            ("gzip;q=0.000", false),
            ("identity", false),
            ("x-gzipped", false),
            ("", false),
        ] {
            let value = HeaderValue::from_static(accepted);
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, value)]);
            assert_eq!(is_taken(&headers), expected, "{accepted}");
        }
        assert!(!is_taken(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn an_answer_of_any_size_is_packed_whole_and_a_small_one_is_not() {
        for size in [0, 1023, 1024, PIECE_BYTES, PIECE_BYTES + 1, 1_000_000] {
            let text: Vec<u8> = (0..size).map(|place| b'a' + (place * place % 23) as u8).collect();
            let response = packed(Response::new(Body::from(text.clone())));
            let is_packed = response.headers().contains_key(header::CONTENT_ENCODING);
            assert_eq!(is_packed, size >= 1024, "{size}");
            let sent = axum::body::to_bytes(response.into_body(), usize::MAX)
                .await
                .expect("a body");
            let mut read = Vec::new();
            match is_packed {
                true => flate2::read::GzDecoder::new(&sent[..])
                    .read_to_end(&mut read)
                    .expect("gzip"),
                false => (&sent[..]).read_to_end(&mut read).expect("bytes"),
            };
            assert!(read == text, "{size}");
        }
    }
}
