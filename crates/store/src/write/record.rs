//! The quarantine record of an object: whole, or cut to what every table can hold if the database rejects the record as
//! well. Pure; the store writes.

use kindex_model::object::{Object, ResourceVersion};

/// What a cut record holds of the object's text, and of the reason.
const TEXT_CHARS: usize = 16_384;
const REASON_CHARS: usize = 4_096;
/// What the columns of names hold.
const UID_CHARS: usize = 64;
const NAME_CHARS: usize = 255;
/// Between what is left of a text and why it was cut.
const MARK: &str = "\n[cut by Kindex";

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) version: ResourceVersion,
    pub(crate) reason: String,
    pub(crate) text: String,
}

impl Record {
    pub(crate) fn of(object: &Object, reason: &str) -> Self {
        let metadata = &object.metadata;
        Self {
            uid: metadata.uid.to_string(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            version: metadata.resource_version,
            reason: reason.to_owned(),
            text: object.text().to_owned(),
        }
    }

    /// The beginning of each part, in characters that every character set has, and why.
    pub(crate) fn cut(&self, refusal: &str) -> Self {
        let bytes = self.text.len();
        let cut = format!("{MARK}: the record of all {bytes} bytes was refused as well]");
        let reason = format!("{}; its record, which is cut: {}", self.reason, refusal);
        Self {
            uid: beginning(&self.uid, UID_CHARS),
            namespace: beginning(&self.namespace, NAME_CHARS),
            name: beginning(&self.name, NAME_CHARS),
            version: self.version,
            reason: beginning(&reason, REASON_CHARS),
            text: beginning(&self.text, TEXT_CHARS) + &cut,
        }
    }
}

/// Whether a recorded text is only the beginning of the object's.
pub fn is_cut(text: &str) -> bool {
    text.rfind(MARK).is_some_and(|at| !text[at + 1..].contains('\n'))
}

fn beginning(text: &str, chars: usize) -> String {
    let plain = |c: char| if c.is_ascii() && c != '\0' { c } else { '?' };
    text.chars().take(chars).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_record_fits_every_column_and_is_marked_as_cut() {
        let long = "\u{1f980}".repeat(100_000);
        let whole = Record {
            uid: long.clone(),
            namespace: long.clone(),
            name: long.clone(),
            version: ResourceVersion(7),
            reason: "too long".to_owned(),
            text: format!("{{\"a\":\"{long}\"}}"),
        };
        let cut = whole.cut(&long);
        assert_eq!((cut.uid.len(), cut.namespace.len(), cut.name.len()), (64, 255, 255));
        assert!(cut.reason.starts_with("too long; its record, which is cut: ?"));
        assert!(cut.reason.len() <= REASON_CHARS && cut.text.len() < TEXT_CHARS + 200);
        assert!(
            cut.text.is_ascii()
                && cut
                    .text
                    .ends_with("[cut by Kindex: the record of all 400008 bytes was refused as well]")
        );
        assert!(is_cut(&cut.text) && !is_cut(&whole.text));
        assert!(!is_cut("{\"a\": \n[cut by Kindex:]\n}"), "an object may quote it");
    }
}
