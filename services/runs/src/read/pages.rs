//! Tokens of pages: where the next one begins. A token counts for the request that it was made for, and says nothing
//! that its owner did not see.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::refusal::{Code, Refusal};

/// By what a list is sorted, of its last entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SortKey {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

/// Behind which entry a page begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PagePosition {
    /// By what the list is sorted.
    pub(crate) key: SortKey,
    /// Which of the entries with that key.
    pub(crate) number: i64,
}

#[derive(Serialize, Deserialize)]
struct Token {
    /// Of the request.
    of: String,
    #[serde(flatten)]
    position: PagePosition,
}

/// What tells one request from another: all of it but the place and the size of the page.
pub(crate) fn fingerprint(request: &impl Message) -> String {
    let hash = Sha256::digest(request.encode_to_vec());
    URL_SAFE_NO_PAD.encode(&hash[..9])
}

/// The token for the page behind an entry.
pub(crate) fn write(fingerprint: &str, position: &PagePosition) -> String {
    let token = Token {
        of: fingerprint.to_owned(),
        position: position.clone(),
    };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).expect("texts and numbers are JSON"))
}

/// Where a page begins; at the first entry if there is no token.
///
/// # Errors
/// No token of this list.
pub(crate) fn read(fingerprint: &str, token: &str) -> Result<Option<PagePosition>, Refusal> {
    if token.is_empty() {
        return Ok(None);
    }
    let read = || {
        let json = URL_SAFE_NO_PAD.decode(token).ok()?;
        let token: Token = serde_json::from_slice(&json).ok()?;
        (token.of == fingerprint).then_some(token.position)
    };
    read().map(Some).ok_or_else(|| {
        let message = "page_token is not from this list: send the next_page_token of the page before with the same \
                       filters and order";
        Refusal::new(Code::InvalidArgument, "INVALID_PAGE_TOKEN", message).at("page_token")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::v1::{ListRunsRequest, ProjectId};

    fn request(project: &str) -> ListRunsRequest {
        ListRunsRequest {
            project_id: Some(ProjectId {
                value: project.to_owned(),
            }),
            ..ListRunsRequest::default()
        }
    }

    #[test]
    fn a_token_counts_for_its_own_list_alone() {
        let (vision, speech) = (fingerprint(&request("vision")), fingerprint(&request("speech")));
        for key in [SortKey::Number(-5), SortKey::Text("a \u{1f600}".to_owned())] {
            let position = PagePosition { key, number: 7 };
            let token = write(&vision, &position);
            assert_eq!(read(&vision, &token), Ok(Some(position)));
            assert_eq!(
                read(&speech, &token).map_err(|refusal| refusal.reason),
                Err("INVALID_PAGE_TOKEN")
            );
        }
        assert_eq!(read(&vision, ""), Ok(None));
        for broken in ["x", "e30", "\u{20ac}", "bm8"] {
            assert!(read(&vision, broken).is_err(), "{broken:?}");
        }
    }
}
