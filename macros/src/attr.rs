//! The attributes as a person wrote them, every part with its span. Checks the grammar only: what a name may be, or
//! which keys belong together, is not known here.

use proc_macro2::{Span, TokenTree};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Ident, LitStr, Token};

use crate::message;

/// All attributes of one struct.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) kube: Option<Kube>,
    pub(crate) tables: Vec<LitStr>,
    pub(crate) columns: Vec<Column>,
}

/// What `#[kube(…)]` says about names; the rest is kube-derive's business.
pub(crate) struct Kube {
    pub(crate) span: Span,
    pub(crate) kind: Option<LitStr>,
    pub(crate) root: Option<LitStr>,
}

/// One `#[indexed(column = …)]`.
pub(crate) struct Column {
    pub(crate) span: Span,
    pub(crate) name: Option<LitStr>,
    pub(crate) path: Option<FieldPath>,
    pub(crate) json: Option<Vec<String>>,
    pub(crate) sql: Option<LitStr>,
    pub(crate) key: Option<Span>,
}

/// `status?.state`
pub(crate) struct FieldPath {
    pub(crate) first: Segment,
    pub(crate) rest: Vec<Segment>,
}

/// One field of a path.
pub(crate) struct Segment {
    pub(crate) field: Ident,
    /// The `?` that says the field is an `Option`.
    pub(crate) optional: Option<Token![?]>,
}

impl Parse for FieldPath {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        refuse_quotes(input)?;
        let first = input.parse()?;
        let mut rest = Vec::new();
        while input.parse::<Option<Token![.]>>()?.is_some() {
            rest.push(input.parse()?);
        }
        Ok(Self { first, rest })
    }
}

impl Parse for Segment {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self {
            field: input.parse()?,
            optional: input.parse()?,
        })
    }
}

/// A JSON path may use Rust's keywords: `spec.type`.
fn parse_json_path(input: ParseStream<'_>) -> syn::Result<Vec<String>> {
    refuse_quotes(input)?;
    let mut names = Vec::new();
    loop {
        names.push(Ident::parse_any(input)?.unraw().to_string());
        if input.parse::<Option<Token![.]>>()?.is_none() {
            return Ok(names);
        }
    }
}

fn refuse_quotes(input: ParseStream<'_>) -> syn::Result<()> {
    match input.fork().parse::<LitStr>() {
        Ok(quoted) => Err(message::quoted_path(quoted.span(), &quoted.value())),
        Err(_) => Ok(()),
    }
}

/// Parses the attributes of a struct. A malformed attribute is reported and left out, the others are kept.
pub(crate) fn parse(input: &DeriveInput, errors: &mut Vec<Error>) -> Written {
    let mut written = Written::default();
    for attribute in &input.attrs {
        let parsed = if attribute.path().is_ident("indexed") {
            parse_indexed(attribute, &mut written)
        } else if attribute.path().is_ident("kube") {
            parse_kube(attribute, &mut written)
        } else {
            Ok(())
        };
        errors.extend(parsed.err());
    }
    refuse_on_fields(input, errors);
    written
}

/// Rust lets a derive's attributes stand on fields too, where ours would be ignored.
fn refuse_on_fields(input: &DeriveInput, errors: &mut Vec<Error>) {
    let Data::Struct(data) = &input.data else {
        return;
    };
    for attribute in data.fields.iter().flat_map(|field| &field.attrs) {
        if attribute.path().is_ident("indexed") {
            errors.push(message::on_a_field(attribute.path().span()));
        }
    }
}

fn parse_indexed(attribute: &Attribute, written: &mut Written) -> syn::Result<()> {
    let mut column = Column {
        span: attribute.path().get_ident().map_or_else(Span::call_site, Ident::span),
        name: None,
        path: None,
        json: None,
        sql: None,
        key: None,
    };
    let mut table: Option<LitStr> = None;
    let mut other = false;
    attribute.parse_nested_meta(|meta| {
        let key = meta.path.require_ident()?.clone();
        other |= key != "table";
        match key.to_string().as_str() {
            "table" => once(&mut table, &key, meta.value()?.parse()?),
            "column" => once(&mut column.name, &key, meta.value()?.parse()?),
            "path" => once(&mut column.path, &key, meta.value()?.parse()?),
            "json" => once(&mut column.json, &key, meta.value()?.call(parse_json_path)?),
            "sql" => once(&mut column.sql, &key, meta.value()?.parse()?),
            "key" => once(&mut column.key, &key, key.span()),
            unknown => Err(message::unknown_key(key.span(), unknown)),
        }
    })?;
    match table {
        Some(table) if other => return Err(message::table_beside_column_keys(table.span())),
        Some(table) => written.tables.push(table),
        None => written.columns.push(column),
    }
    Ok(())
}

fn once<T>(slot: &mut Option<T>, key: &Ident, value: T) -> syn::Result<()> {
    match slot.replace(value) {
        Some(_) => Err(message::key_given_twice(key.span(), key)),
        None => Ok(()),
    }
}

/// Reads `kind` and `root`, skips everything else: kube-derive reports its own errors.
fn parse_kube(attribute: &Attribute, written: &mut Written) -> syn::Result<()> {
    let kube = written.kube.get_or_insert_with(|| Kube {
        span: attribute.path().get_ident().map_or_else(Span::call_site, Ident::span),
        kind: None,
        root: None,
    });
    attribute.parse_nested_meta(|meta| {
        if meta.path.is_ident("kind") {
            kube.kind = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("root") {
            kube.root = Some(meta.value()?.parse()?);
        } else {
            skip(&meta)?;
        }
        Ok(())
    })
}

fn skip(meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    while !meta.input.is_empty() && !meta.input.peek(Token![,]) {
        meta.input.parse::<TokenTree>()?;
    }
    Ok(())
}
