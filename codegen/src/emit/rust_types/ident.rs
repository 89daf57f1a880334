//! Rust names of proto names. Fields and types are named by prost-build, whose rules are repeated here with the same
//! library, so that other code can refer to them; that the two agree is what compiling the output proves.

use heck::{ToSnakeCase, ToUpperCamelCase};

/// The identifier of a field or module: `training_framework`, `r#type`.
pub(crate) fn field(name: &str) -> String {
    sanitize(&name.to_snake_case())
}

/// The identifier of a message, enum or oneof member: `LlmSpec`.
pub(crate) fn ty(name: &str) -> String {
    sanitize(&name.to_upper_camel_case())
}

/// The identifier of the enum that holds a oneof's members, which gives way to a type of that name beside it.
pub(crate) fn oneof<'a>(name: &str, mut nested: impl Iterator<Item = &'a str>) -> String {
    let ident = ty(name);
    if nested.any(|nested| ty(nested) == ident) {
        format!("{ident}OneOf")
    } else {
        ident
    }
}

/// The name that serde gives a field by itself.
pub(crate) fn serde_name(ident: &str) -> &str {
    ident.strip_prefix("r#").unwrap_or(ident)
}

fn sanitize(ident: &str) -> String {
    if matches!(ident, "_" | "super" | "self" | "Self" | "extern" | "crate") {
        format!("{ident}_")
    } else if ident.starts_with(|c: char| c.is_numeric()) {
        format!("_{ident}")
    } else if syn::parse_str::<syn::Ident>(ident).is_err() {
        format!("r#{ident}")
    } else {
        ident.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_become_raw() {
        assert_eq!(field("type"), "r#type");
        assert_eq!(field("continue"), "r#continue");
        assert_eq!(field("self"), "self_");
        assert_eq!(serde_name("r#type"), "type");
    }

    #[test]
    fn acronyms_are_one_word() {
        assert_eq!(ty("LLMSpec"), "LlmSpec");
        assert_eq!(field("hostPID"), "host_pid");
        assert_eq!(field("fieldsV1"), "fields_v1");
    }
}
