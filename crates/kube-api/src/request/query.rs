//! Query parameters, and the options of lists and watches that they carry.

use super::escape::unescaped;
use super::parameter;
use crate::selector::{FieldSelector, LabelSelector, SelectorError};

/// The parameters of a URL, decoded.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

/// What to do about fields that the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and the client is warned.
    Warn,
    /// The request is refused.
    Strict,
}

/// How exactly a list's resource version is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    /// This one.
    Exact,
    /// This one, or one after it.
    NotOlderThan,
}

/// A parameter that cannot be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A selector outside its grammar.
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// A parameter with a value it cannot have.
    #[error("{0}: Unsupported value: {1}: supported values: {2}")]
    Unsupported(&'static str, String, &'static str),
    /// A parameter that is no number.
    #[error("strconv.ParseInt: parsing {0:?}: invalid syntax")]
    Number(String),
    /// A parameter, and its value that is neither true nor false.
    #[error("{0}: Invalid value: {1:?}: write true or false")]
    Flag(&'static str, String),
    /// A resource version that is none.
    #[error(
        "invalid resource version: resourceVersion: Invalid value: {0:?}: strconv.ParseUint: parsing {0:?}: invalid syntax"
    )]
    Version(String),
}

/// The options of a list or watch.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// `labelSelector`
    pub labels: LabelSelector,
    /// `fieldSelector`
    pub fields: FieldSelector,
    /// `limit`; objects of a page.
    pub limit: Option<u32>,
    /// `continue`
    pub continue_token: Option<String>,
    /// Absent and empty are one; `0` is any version.
    pub rv: Option<u64>,
    /// `resourceVersionMatch`
    pub version_match: Option<VersionMatch>,
    /// `watch`
    pub watch: bool,
    /// `allowWatchBookmarks`
    pub bookmarks: bool,
    /// `sendInitialEvents`
    pub initial_events: bool,
    /// `timeoutSeconds`
    pub timeout_seconds: Option<u64>,
}

impl Query {
    /// Parses the part of a URL after the question mark.
    pub fn parse(text: &str) -> Self {
        let decode = |part: &str| unescaped(&part.replace('+', " "));
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self { pairs: pairs.collect() }
    }

    /// The first non-empty value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(n, value)| n == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// The names of its parameters, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|(name, _)| name.as_str())
    }

    /// Whether a parameter is given at all.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// What a parameter of Kindex's own says, in one of the spellings of Go's `strconv.ParseBool`; where it is absent,
    /// false.
    ///
    /// # Errors
    /// A value that is neither true nor false.
    pub fn flag(&self, name: &'static str) -> Result<bool, QueryError> {
        match self.get(name) {
            None | Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
            Some(other) => Err(QueryError::Flag(name, other.to_owned())),
        }
    }

    /// Whether a parameter of Kubernetes is on, as it reads them: whatever it says but `false` and `0`.
    pub fn is_on(&self, name: &str) -> bool {
        let is_off = |text: &str| text == "0" || text.eq_ignore_ascii_case("false");
        self.get(name).is_some_and(|text| !is_off(text))
    }

    /// Whether the request must leave no trace.
    ///
    /// # Errors
    /// When `dryRun` is anything but `All`.
    pub fn dry_run(&self) -> Result<bool, QueryError> {
        match self.get(parameter::DRY_RUN) {
            None => Ok(false),
            Some(parameter::ALL_STAGES) => Ok(true),
            Some(other) => Err(QueryError::Unsupported(
                parameter::DRY_RUN,
                format!("[{other:?}]"),
                "\"All\"",
            )),
        }
    }

    /// What `fieldValidation` asks for; the default is to warn.
    pub fn field_validation(&self) -> Result<FieldValidation, QueryError> {
        match self.get(parameter::FIELD_VALIDATION) {
            None | Some("Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => {
                let allowed = "\"\", \"Ignore\", \"Strict\", \"Warn\"";
                Err(QueryError::Unsupported(
                    parameter::FIELD_VALIDATION,
                    format!("{other:?}"),
                    allowed,
                ))
            }
        }
    }

    /// What `resourceVersion` says.
    pub fn version(&self) -> Result<Option<u64>, QueryError> {
        let parse = |text: &str| text.parse().map_err(|_| QueryError::Version(text.to_owned()));
        self.get(parameter::RESOURCE_VERSION).map(parse).transpose()
    }

    /// What `limit` says.
    pub fn limit(&self) -> Result<Option<u32>, QueryError> {
        let limit = self.number(parameter::LIMIT)?;
        Ok(limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)))
    }

    /// What `timeoutSeconds` says.
    pub fn timeout_seconds(&self) -> Result<Option<u64>, QueryError> {
        self.number(parameter::TIMEOUT_SECONDS)
    }

    /// Less than nothing is as good as nothing.
    fn number(&self, name: &str) -> Result<Option<u64>, QueryError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse::<i64>() {
            Ok(number) => Ok(u64::try_from(number).ok().filter(|number| *number > 0)),
            Err(_) => Err(QueryError::Number(text.to_owned())),
        }
    }

    /// The options of a list or watch.
    pub fn list(&self) -> Result<ListQuery, QueryError> {
        let version_match = match self.get(parameter::RESOURCE_VERSION_MATCH) {
            None => None,
            Some("Exact") => Some(VersionMatch::Exact),
            Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
            Some(other) => {
                let allowed = "\"Exact\", \"NotOlderThan\", \"\"";
                return Err(QueryError::Unsupported(
                    parameter::RESOURCE_VERSION_MATCH,
                    format!("{other:?}"),
                    allowed,
                ));
            }
        };
        Ok(ListQuery {
            labels: LabelSelector::parse(self.get(parameter::LABEL_SELECTOR).unwrap_or_default())?,
            fields: FieldSelector::parse(self.get(parameter::FIELD_SELECTOR).unwrap_or_default())?,
            limit: self.limit()?,
            continue_token: self.get(parameter::CONTINUE).map(str::to_owned),
            rv: self.version()?,
            version_match,
            watch: self.is_on(parameter::WATCH),
            bookmarks: self.is_on(parameter::ALLOW_WATCH_BOOKMARKS),
            initial_events: self.is_on(parameter::SEND_INITIAL_EVENTS),
            timeout_seconds: self.timeout_seconds()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_empty_ones_are_absent() {
        let query = Query::parse("labelSelector=a%3Db%2Cc&limit=5&continue=&watch=1&x=a+b");
        let list = query.list().unwrap();
        assert_eq!(list.labels, LabelSelector::parse("a=b,c").unwrap());
        assert_eq!((list.limit, list.continue_token, list.watch), (Some(5), None, true));
        assert_eq!(query.get("x"), Some("a b"));
    }

    /// As if a value could end its parameter, and begin another one.
    #[test]
    fn what_is_sent_is_what_is_read() {
        let path = "/apis/g/v1/widgets";
        assert_eq!(parameter::with_parameters(path, &[]), path);
        let parameters = [
            (parameter::LABEL_SELECTOR, "a=b,c in (d e)".to_owned()),
            (parameter::CONTINUE, "x&limit=1#+%".to_owned()),
            (parameter::LIMIT, "5".to_owned()),
        ];
        let uri = parameter::with_parameters(path, &parameters);
        let query = uri.strip_prefix("/apis/g/v1/widgets?").expect("the path stays");
        let read = Query::parse(query);
        assert_eq!(read.names().count(), parameters.len(), "{uri}");
        for (name, value) in &parameters {
            assert_eq!(read.get(name), Some(value.as_str()), "{uri}");
        }
    }

    #[test]
    fn numbers_of_nothing_and_less_say_nothing() {
        for text in ["", "limit=0&timeoutSeconds=0", "limit=-1&timeoutSeconds=-1"] {
            let query = Query::parse(text);
            assert_eq!((query.limit(), query.timeout_seconds()), (Ok(None), Ok(None)), "{text}");
        }
        let query = Query::parse("limit=5000000000&timeoutSeconds=5000000000");
        assert_eq!(query.limit(), Ok(Some(u32::MAX)));
        assert_eq!(query.timeout_seconds(), Ok(Some(5_000_000_000)));
        for text in ["limit=x", "timeoutSeconds=1.5"] {
            assert!(Query::parse(text).list().is_err(), "{text}");
        }
    }

    #[test]
    fn a_flag_is_true_or_false_and_nothing_else() {
        let flag = |value: &str| Query::parse(&format!("resolve={value}")).flag("resolve");
        for value in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(flag(value), Ok(true), "{value}");
        }
        for value in ["", "0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(flag(value), Ok(false), "{value}");
        }
        assert_eq!(Query::parse("").flag("resolve"), Ok(false));
        for value in ["maybe", "yes", "2", "tRUE", "fAlSe"] {
            let why = format!("resolve: Invalid value: {value:?}: write true or false");
            assert_eq!(flag(value).map_err(|error| error.to_string()), Err(why));
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for text in [
            "limit=x",
            "resourceVersion=-1",
            "resourceVersionMatch=Newest",
            "labelSelector=a%3Db%3Dc",
        ] {
            assert!(Query::parse(text).list().is_err(), "{text}");
        }
        assert!(Query::parse("dryRun=Some").dry_run().is_err());
        assert!(Query::parse("fieldValidation=Maybe").field_validation().is_err());
    }
}
