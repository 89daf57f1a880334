//! JSON Schema as far as a CRD may use it, with one constructor for each shape that occurs. Knows no message.

use std::collections::BTreeMap;

use serde::Serialize;

/// A node of a schema, printed in the order of its fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JsonSchema {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) description: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) ty: Option<JsonType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pattern: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) minimum: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) maximum: Option<i64>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub(super) names: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) nullable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) items: Option<Box<JsonSchema>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) properties: BTreeMap<String, JsonSchema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) additional_properties: Option<Box<JsonSchema>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) required: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) any_of: Vec<JsonSchema>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) one_of: Vec<JsonSchema>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) all_of: Vec<JsonSchema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not: Option<Box<JsonSchema>>,
    #[serde(rename = "x-kubernetes-int-or-string", skip_serializing_if = "std::ops::Not::not")]
    pub(super) int_or_string: bool,
    #[serde(
        rename = "x-kubernetes-preserve-unknown-fields",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub(super) preserve_unknown_fields: bool,
}

/// The types of JSON Schema that occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum JsonType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl JsonSchema {
    /// A value of that type and nothing more.
    pub(super) fn of(ty: JsonType) -> Self {
        Self {
            ty: Some(ty),
            ..Self::default()
        }
    }

    /// A value of that type, in that format.
    pub(super) fn format(ty: JsonType, format: &'static str) -> Self {
        Self {
            format: Some(format),
            ..Self::of(ty)
        }
    }

    /// Text that a regular expression describes.
    pub(super) fn pattern(pattern: &'static str) -> Self {
        Self {
            pattern: Some(pattern),
            ..Self::of(JsonType::String)
        }
    }

    /// A number or text, in the only form that Kubernetes allows for it.
    pub(super) fn int_or_string() -> Self {
        Self {
            any_of: vec![Self::of(JsonType::Integer), Self::of(JsonType::String)],
            int_or_string: true,
            ..Self::default()
        }
    }

    /// Any JSON object, whole.
    pub(super) fn any_object() -> Self {
        Self {
            preserve_unknown_fields: true,
            ..Self::of(JsonType::Object)
        }
    }

    /// Any JSON value, whole.
    pub(super) fn any_value() -> Self {
        Self {
            preserve_unknown_fields: true,
            ..Self::default()
        }
    }

    /// A list.
    pub(super) fn list(items: Self) -> Self {
        Self {
            items: Some(Box::new(items)),
            ..Self::of(JsonType::Array)
        }
    }

    /// An object whose keys are data.
    pub(super) fn map(values: Self) -> Self {
        Self {
            additional_properties: Some(Box::new(values)),
            ..Self::of(JsonType::Object)
        }
    }

    /// An object with these properties and no others.
    pub(super) fn object(properties: impl IntoIterator<Item = (String, Self)>) -> Self {
        Self {
            properties: properties.into_iter().collect(),
            ..Self::of(JsonType::Object)
        }
    }

    /// At most one of these properties is present.
    pub(super) fn at_most_one(properties: &[&str]) -> Self {
        let present = |name: &&str| Self {
            required: vec![(*name).to_owned()],
            ..Self::default()
        };
        let each: Vec<Self> = properties.iter().map(present).collect();
        let none = Self {
            not: Some(Box::new(Self {
                any_of: each.clone(),
                ..Self::default()
            })),
            ..Self::default()
        };
        Self {
            one_of: [none].into_iter().chain(each).collect(),
            ..Self::default()
        }
    }

    /// What is declared at the end of a path of properties.
    pub(super) fn at<'a>(&self, mut path: impl Iterator<Item = &'a str>) -> Option<&Self> {
        path.try_fold(self, |schema, name| schema.properties.get(name))
    }

    /// Whether field selectors may select by such a value: a text, an integer or a bool, and nothing that may be two
    /// of them.
    pub(super) fn is_selectable(&self) -> bool {
        match self.ty {
            Some(JsonType::String | JsonType::Integer | JsonType::Boolean) => !self.int_or_string,
            Some(JsonType::Object | JsonType::Array | JsonType::Number) | None => false,
        }
    }

    /// The same, with a description where `text` holds one.
    pub(super) fn described(mut self, text: &str) -> Self {
        if !text.is_empty() {
            self.description = text.to_owned();
        }
        self
    }

    /// The same, or null.
    pub(super) fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }
}
