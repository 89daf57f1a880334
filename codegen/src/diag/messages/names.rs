//! Errors in names: wrong letters, too long, taken, reserved.

use crate::diag::Diagnostic;
use crate::dialect::Limit;
use crate::model::{NameError, TableName};
use crate::source::{Span, Text};

pub(crate) fn bad_name(text: &Text, error: NameError) -> Diagnostic {
    let name = &text.value;
    let title = match error {
        NameError::Empty => "a name must not be empty".to_owned(),
        NameError::NotPascalCase => format!("kind \"{name}\" is not in PascalCase"),
        NameError::NotSnakeCase => format!("SQL name \"{name}\" is not in snake_case"),
        NameError::NotKebabCase => format!("query \"{name}\" is not in kebab-case"),
        NameError::NotServiceName => format!("service \"{name}\" is not in kebab-case"),
        NameError::TooLong { .. } => format!("SQL name \"{name}\" is too long"),
        NameError::NotDnsName => format!("API group \"{name}\" is not a DNS name"),
        NameError::NotApiVersion => format!("\"{name}\" is not an API version"),
        NameError::NotQualified => format!("\"{name}\" is not the name of a message"),
    };
    let help = match error {
        NameError::Empty => return Diagnostic::at(text.span, title),
        NameError::TooLong { most, products } => {
            return Diagnostic::at(text.span, title).help(format!(
                "a name has at most {most} characters ({products}); columns made of parts get \
                 `_namespace` or `_proxy_user` appended"
            ));
        }
        NameError::NotPascalCase => {
            "a kind starts with an upper-case letter and has letters and digits only: PipelineRun"
        }
        NameError::NotSnakeCase => {
            "a SQL name starts with a lower-case letter and has lower-case letters, digits and underscores only"
        }
        NameError::NotKebabCase => {
            "a query starts with a lower-case letter and has lower-case letters, digits and dashes only: failed-runs"
        }
        NameError::NotServiceName => {
            "a service starts with a lower-case letter and has lower-case letters, digits and dashes only: region"
        }
        NameError::NotDnsName => "lower-case letters, digits and dashes between dots: michelangelo.api",
        NameError::NotApiVersion => "Kubernetes versions look like v1, v2alpha1 or v1beta2",
        NameError::NotQualified => "write the full name: package, dot, message",
    };
    Diagnostic::at(text.span, title).help(help)
}

pub(crate) fn not_qualified(text: &Text) -> Diagnostic {
    let title = format!("\"{}\" is not a qualified name", text.value);
    Diagnostic::at(text.span, title)
        .help("Kubernetes wants a DNS name, a slash, and up to 63 letters, digits and `-_.`: michelangelo/Ingester")
}

pub(crate) fn not_a_resource_name(text: &Text) -> Diagnostic {
    let title = format!("\"{}\" is not a resource name", text.value);
    Diagnostic::at(text.span, title).help("up to 63 lower-case letters, digits and dashes, as they stand in a URL")
}

pub(crate) fn kind_too_long(kind: &Text, longest: usize, limit: Limit) -> Diagnostic {
    let Limit { most, products } = limit;
    let title = format!("kind \"{}\" is too long", kind.value);
    Diagnostic::at(kind.span, title).help(format!(
        "at most {longest} characters: its tables and keys get suffixes, and a SQL name has at most {most} ({products})"
    ))
}

pub(crate) fn module_keyword(kind: &Text, module: &str) -> Diagnostic {
    let title = format!("kind \"{}\" would be the Rust module `{module}`", kind.value);
    Diagnostic::at(kind.span, title)
        .label("a keyword of Rust")
        .help("choose another name")
}

pub(crate) fn duplicate_table(kind: &Text, table: &TableName, first: Span) -> Diagnostic {
    let title = format!("two kinds with one table `{table}`");
    Diagnostic::at(kind.span, title)
        .related(first, "the first one")
        .help("the table is the kind in lower case, so kinds must differ in more than case")
}

pub(crate) fn duplicate_plural(plural: &str, span: Span, first: Span) -> Diagnostic {
    Diagnostic::at(span, format!("plural \"{plural}\" is taken in this API group"))
        .related(first, "by this kind")
        .help("set `plural` on one of the kinds")
}

pub(crate) fn duplicate_short_name(text: &Text, first: Span) -> Diagnostic {
    let title = format!("short name \"{}\" is taken", text.value);
    Diagnostic::at(text.span, title).related(first, "here")
}

/// `products` are those that take the name once.
pub(crate) fn duplicate_sql_name(name: &str, products: &[&str], span: Span, first: Span) -> Diagnostic {
    let keep = if products.len() == 1 { "keeps" } else { "keep" };
    let products = products.join(" and ");
    Diagnostic::at(span, format!("two tables or keys with one name `{name}`"))
        .related(first, "the first one belongs to this kind")
        .help(format!(
            "{products} {keep} tables and keys in one list; rename the column that the key is named for"
        ))
}

pub(crate) fn base_column(text: &Text, name: &str) -> Diagnostic {
    Diagnostic::at(text.span, format!("column \"{name}\" is one that every table has"))
        .help("choose another name; the value of the base column cannot be replaced")
}

pub(crate) fn reserved_word(text: &Text, whose: &str) -> Diagnostic {
    let title = format!("column \"{}\" is a reserved word of {whose}", text.value);
    Diagnostic::at(text.span, title).help(format!("choose another name, such as \"{}_value\"", text.value))
}

pub(crate) fn duplicate_column(text: &Text, name: &str, first: Span) -> Diagnostic {
    Diagnostic::at(text.span, format!("duplicate column \"{name}\""))
        .related(first, "first declared here")
        .help(
            "a ResourceIdentifier makes `<name>_namespace` and `<name>_name`, a UserInfo `<name>_name` and \
             `<name>_proxy_user`",
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Sources;

    #[test]
    fn a_name_that_is_taken_is_explained_by_all_products_that_take_it_once() {
        let span = Span::new(Sources::of_crds("").crds(), 0..0);
        let help = |products: &[&str]| duplicate_sql_name("a", products, span, span).help_lines().concat();
        let rest = "tables and keys in one list; rename the column that the key is named for";
        assert_eq!(help(&["One"]), format!("One keeps {rest}"));
        assert_eq!(help(&["One", "Another"]), format!("One and Another keep {rest}"));
    }
}
