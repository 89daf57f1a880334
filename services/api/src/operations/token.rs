//! The continue tokens of merged lists: the position in the cluster's part, the position in SQL's part, and the list.
//! Opaque to callers. Untrusted: the cluster and the store validate their parts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use kindex_model::kind::Kind;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{ListOptions, Refusal};

/// Where a merged list goes on.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Token {
    /// Of which list.
    list: String,
    /// The version of the cluster that all of the list is of.
    pub(super) version: String,
    /// When it began.
    pub(super) began: Timestamp,
    pub(super) next: Next,
}

/// What comes next.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) enum Next {
    /// The cluster's page after this token of its own.
    Cluster(String),
    /// The first page of archived objects.
    Stored,
    /// The page of that after this token of the store.
    StoredAfter(String),
}

impl Token {
    pub(super) fn new(kind: &Kind, options: &ListOptions, version: &str, began: Timestamp, next: Next) -> Self {
        Self {
            list: fingerprint(kind, options),
            version: version.to_owned(),
            began,
            next,
        }
    }

    pub(super) fn encode(&self) -> String {
        let text = serde_json::to_vec(self).expect("a token is plain data");
        URL_SAFE_NO_PAD.encode(text)
    }

    /// # Errors
    /// 400 for a token of another list, or of nobody.
    pub(super) fn decode(text: &str, kind: &Kind, options: &ListOptions) -> Result<Self, Refusal> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let token: Option<Self> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        match token {
            None => Err(Refusal::bad_request(
                "continue key is not valid: not one that a list came with",
            )),
            Some(token) if token.list != fingerprint(kind, options) => Err(Refusal::bad_request(
                "continue key is not valid: it goes on with another list; keep its selectors and parameters",
            )),
            Some(token) => Ok(token),
        }
    }
}

fn fingerprint(kind: &Kind, options: &ListOptions) -> String {
    let ListOptions {
        namespace,
        labels,
        fields,
        include_deleted,
        ..
    } = options;
    let mut digest = Sha256::new();
    digest.update(format!(
        "{:?}",
        (kind.table, namespace, labels, fields, include_deleted)
    ));
    URL_SAFE_NO_PAD.encode(&digest.finalize()[..12])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) static KIND: Kind = Kind {
        name: "Run",
        group: "g",
        version: "v1",
        plural: "runs",
        singular: "run",
        table: "run",
        ..Kind::EMPTY
    };

    #[test]
    fn a_token_goes_on_with_its_own_list_alone() {
        let options = ListOptions {
            labels: "a=b".to_owned(),
            ..ListOptions::default()
        };
        let token = Token::new(
            &KIND,
            &options,
            "7",
            Timestamp::UNIX_EPOCH,
            Next::StoredAfter("x".into()),
        );
        let text = token.encode();
        let next_page = ListOptions {
            limit: 3,
            ..options.clone()
        };
        assert_eq!(Token::decode(&text, &KIND, &next_page).expect("its own"), token);
        let but = |change: fn(&mut ListOptions)| {
            let mut other = options.clone();
            change(&mut other);
            other
        };
        for other in [
            but(|other| other.labels = "a=c".to_owned()),
            but(|other| other.fields = "metadata.name=a".to_owned()),
            but(|other| other.namespace = Some("other".to_owned())),
            but(|other| other.include_deleted = true),
        ] {
            let refusal = Token::decode(&text, &KIND, &other).expect_err("of another list");
            assert_eq!(refusal.code, 400, "{other:?}");
        }
        static OTHER: Kind = Kind { table: "other", ..KIND };
        assert_eq!(
            Token::decode(&text, &OTHER, &options)
                .expect_err("of another kind")
                .code,
            400
        );
        for text in ["", "e30", "%%"] {
            let refusal = Token::decode(text, &KIND, &options).expect_err("nobody's");
            assert_eq!(refusal.code, 400, "{text}");
        }
    }
}
