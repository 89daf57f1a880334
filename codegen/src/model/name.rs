//! Names as types. A value of one of these types has passed the rules of the place where it is used; how a wrong
//! name is reported to a person is not known here.

use std::fmt;

/// Why a text is not a name of the wanted sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was given.
    #[error("a name must not be empty")]
    Empty,
    /// Kinds are PascalCase: an upper-case ASCII letter, then ASCII letters and digits.
    #[error("a kind is written in PascalCase")]
    NotPascalCase,
    /// SQL names are snake_case: lower-case ASCII letters, digits and underscores, a letter first.
    #[error("a column is written in snake_case")]
    NotSnakeCase,
    /// Queries are kebab-case: lower-case ASCII letters, digits and dashes, a letter first.
    #[error("a query is written in kebab-case")]
    NotKebabCase,
    /// Services are kebab-case like queries.
    #[error("a service is written in kebab-case")]
    NotServiceName,
    /// Longer than the names of an engine.
    #[error("a SQL name has at most {most} characters")]
    TooLong {
        /// The most that every engine has room for.
        most: usize,
        /// The products that have room for no more.
        products: &'static str,
    },
    /// Not a DNS subdomain as Kubernetes wants it for an API group.
    #[error("an API group is a lower-case DNS name")]
    NotDnsName,
    /// Not `v1`, `v1beta2` and the like.
    #[error("an API version looks like v1, v2alpha1 or v1beta2")]
    NotApiVersion,
    /// Not a dotted protobuf name.
    #[error("a message name is a dotted protobuf name")]
    NotQualified,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Checks `text` against the rules of this sort of name.
            ///
            /// # Errors
            /// The first rule that the text breaks.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// The name as it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }
    };
}

name!(/// A Kubernetes kind: `PipelineRun`.
    KindName, pascal_case);
name!(/// A SQL table: `pipelinerun`.
    TableName, sql_name);
name!(/// A SQL column: `pipeline_namespace`; also the base name that the two halves of a composite column share.
    ColumnName, sql_name);
name!(/// A SQL key: `pipelinerun_state`.
    KeyName, sql_name);
name!(/// A named query: `failed-runs`.
    QueryName, kebab_case);
name!(/// Another service whose kinds references name: `region`.
    ServiceName, service_name);
name!(/// An API group: `michelangelo.api`.
    GroupName, dns_name);
name!(/// An API version: `v2`.
    ApiVersion, api_version);
name!(/// The full name of a protobuf message without a leading dot: `michelangelo.api.v2.ModelSpec.PredictionResult`.
    MessageName, qualified);
name!(/// The full name of a protobuf enum without a leading dot: `michelangelo.api.v2.PipelineRunState`.
    EnumName, qualified);

/// What message and enum names have in common: a package, outer messages, a last segment.
pub trait QualifiedName {
    /// The whole dotted name.
    fn full(&self) -> &str;

    /// The last segment: `PredictionResult`.
    fn base(&self) -> &str {
        self.full().rsplit('.').next().unwrap_or_default()
    }
}

impl QualifiedName for MessageName {
    fn full(&self) -> &str {
        self.as_str()
    }
}

impl QualifiedName for EnumName {
    fn full(&self) -> &str {
        self.as_str()
    }
}

impl ColumnName {
    /// This name with `_<suffix>` appended, as for the halves of a composite column.
    ///
    /// # Errors
    /// A suffix that no SQL name has.
    pub fn with_suffix(&self, suffix: &str) -> Result<Self, NameError> {
        Self::parse(&format!("{self}_{suffix}"))
    }
}

impl TableName {
    /// The key `<table>_<suffix>`.
    ///
    /// # Errors
    /// A suffix that no SQL name has.
    pub fn key(&self, suffix: &str) -> Result<KeyName, NameError> {
        KeyName::parse(&format!("{self}_{suffix}"))
    }

    /// The table `<table>_<suffix>`, beside this one.
    ///
    /// # Errors
    /// A suffix that no SQL name has.
    pub fn beside(&self, suffix: &str) -> Result<Self, NameError> {
        Self::parse(&format!("{self}_{suffix}"))
    }
}

impl QueryName {
    /// The name of the emitted function: `failed_runs`.
    pub fn function(&self) -> String {
        self.0.replace('-', "_")
    }
}

/// `PipelineRun` to `pipeline_run`, `HTTPServer` to `http_server`, `RayJobV2` to `ray_job_v2`.
pub fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (at, &c) in chars.iter().enumerate() {
        let starts_word = c.is_ascii_uppercase()
            && at > 0
            && (!chars[at - 1].is_ascii_uppercase() || chars.get(at + 1).is_some_and(|next| next.is_ascii_lowercase()));
        if starts_word && !out.ends_with('_') {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn pascal_case(text: &str) -> Result<(), NameError> {
    let first = text.chars().next().ok_or(NameError::Empty)?;
    if first.is_ascii_uppercase() && text.chars().all(|c| c.is_ascii_alphanumeric()) {
        Ok(())
    } else {
        Err(NameError::NotPascalCase)
    }
}

fn sql_name(text: &str) -> Result<(), NameError> {
    lower_case_with(text, '_', NameError::NotSnakeCase)
}

fn kebab_case(text: &str) -> Result<(), NameError> {
    lower_case_with(text, '-', NameError::NotKebabCase)
}

fn service_name(text: &str) -> Result<(), NameError> {
    lower_case_with(text, '-', NameError::NotServiceName)
}

fn lower_case_with(text: &str, separator: char, error: NameError) -> Result<(), NameError> {
    let first = text.chars().next().ok_or(NameError::Empty)?;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == separator;
    if first.is_ascii_lowercase() && text.chars().all(allowed) {
        Ok(())
    } else {
        Err(error)
    }
}

fn dns_name(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    if text.len() <= 253 && text.split('.').all(label) {
        Ok(())
    } else {
        Err(NameError::NotDnsName)
    }
}

fn api_version(text: &str) -> Result<(), NameError> {
    let number = |text: &str| -> Option<usize> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && !text.starts_with('0')).then_some(digits)
    };
    let rest = text.strip_prefix('v').ok_or(NameError::NotApiVersion)?;
    let major = number(rest).ok_or(NameError::NotApiVersion)?;
    let stage = &rest[major..];
    if stage.is_empty() {
        return Ok(());
    }
    let minor = stage
        .strip_prefix("alpha")
        .or_else(|| stage.strip_prefix("beta"))
        .ok_or(NameError::NotApiVersion)?;
    if number(minor) == Some(minor.len()) {
        Ok(())
    } else {
        Err(NameError::NotApiVersion)
    }
}

fn qualified(text: &str) -> Result<(), NameError> {
    let segment = |segment: &str| {
        segment
            .chars()
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && segment.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if text.is_empty() {
        Err(NameError::Empty)
    } else if text.split('.').all(segment) {
        Ok(())
    } else {
        Err(NameError::NotQualified)
    }
}

/// The plural of a kind that names none: the kind in lower case and an `s`, whatever English says. The model of kinds
/// and the policy for references have the same rule.
pub(crate) fn default_plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_pascal_case() {
        assert!(KindName::parse("PipelineRun").is_ok());
        for wrong in ["", "pipelineRun", "Pipeline_Run", "Pipeline-Run", "Überlauf"] {
            assert!(KindName::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sql_names_are_snake_case() {
        assert!(ColumnName::parse("owner_2").is_ok());
        assert_eq!(ColumnName::parse("9lives"), Err(NameError::NotSnakeCase));
        assert_eq!(ColumnName::parse("Owner"), Err(NameError::NotSnakeCase));
    }

    #[test]
    fn api_versions_are_those_of_kubernetes() {
        for right in ["v1", "v2", "v10", "v1alpha1", "v1beta12"] {
            assert!(ApiVersion::parse(right).is_ok(), "{right}");
        }
        for wrong in ["", "1", "v", "v0", "v1gamma1", "v1alpha", "v1beta1x", "V1"] {
            assert!(ApiVersion::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn groups_are_dns_names() {
        assert!(GroupName::parse("michelangelo.api").is_ok());
        for wrong in ["", "Michelangelo.api", "a..b", "-a.b", "a_b"] {
            assert!(GroupName::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn snake_case_splits_words_as_people_do() {
        for (from, to) in [
            ("PipelineRun", "pipeline_run"),
            ("Model", "model"),
            ("HTTPServer", "http_server"),
            ("RayJobV2", "ray_job_v2"),
            ("trainingFramework", "training_framework"),
        ] {
            assert_eq!(snake_case(from), to);
        }
    }

    #[test]
    fn a_plural_that_is_not_named_is_the_kind_and_an_s() {
        for (kind, plural) in [
            ("PipelineRun", "pipelineruns"),
            ("CloudIdentity", "cloudidentitys"),
            ("Address", "addresss"),
        ] {
            assert_eq!(default_plural(kind), plural);
        }
    }

    #[test]
    fn a_qualified_name_knows_its_last_segment() {
        let name = MessageName::parse("a.v2.ModelSpec.PredictionResult").expect("valid");
        assert_eq!(name.base(), "PredictionResult");
    }
}
