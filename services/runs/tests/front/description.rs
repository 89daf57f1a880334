//! What a request over REST gets, and what `openapi.json` says that it gets and sends: compared for each, with no field
//! more. Knows no server.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use jsonschema::Validator;
use serde_json::{Value, json};

const TEXT: &str = include_str!("../../src/rest/openapi.json");

pub(crate) static DESCRIPTION: LazyLock<Description> = LazyLock::new(|| Description::read(TEXT));

thread_local! {
    /// The calls of one test whose answers were compared.
    pub(crate) static COMPARED: RefCell<BTreeSet<Name>> = RefCell::default();
}

/// Path and method.
pub(crate) type Name = (String, String);

/// The schemas of a call.
pub(crate) struct Call {
    /// As JSON; others answer with text.
    request: Option<Validator>,
    pub(crate) answer: Option<Validator>,
}

/// All calls by path and method, and what refuses them.
pub(crate) struct Description {
    pub(crate) calls: BTreeMap<Name, Call>,
    error: Validator,
}

impl Description {
    fn read(text: &str) -> Self {
        let document: Value = serde_json::from_str(text).expect("JSON");
        let components = &document["components"];
        let mut closed = components.clone();
        close(&mut closed);
        let mut calls = BTreeMap::new();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, call) in methods.as_object().expect("methods") {
                if method == "parameters" {
                    continue;
                }
                let schema = |place: &str, components| {
                    let schema = call.pointer(&format!("{place}/content/application~1json/schema"));
                    schema.map(|schema| validator(schema, components))
                };
                let described = Call {
                    request: schema("/requestBody", components),
                    answer: schema("/responses/200", &closed),
                };
                calls.insert((path.clone(), method.to_uppercase()), described);
            }
        }
        let error = validator(&json!({"$ref": "#/components/schemas/Error"}), &closed);
        Self { calls, error }
    }

    /// The call of a request: of several paths the one with the fewest parameters.
    fn call(&self, method: &Method, path: &str) -> Option<(&Name, &Call)> {
        let fits = |template: &str| {
            let (parts, given): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
            parts.len() == given.len()
                && parts
                    .iter()
                    .zip(&given)
                    .all(|(part, given)| part.starts_with('{') || part == given)
        };
        let fitting = self.calls.iter().filter(|((template, _), _)| fits(template));
        let best = fitting.filter(|((_, verb), _)| verb == method.as_str());
        best.min_by_key(|((template, _), _)| template.matches('{').count())
    }
}

fn validator(schema: &Value, components: &Value) -> Validator {
    let whole = json!({"allOf": [schema], "components": components});
    let options = jsonschema::draft202012::options().should_validate_formats(true);
    options.build(&whole).expect("a schema")
}

/// Lets objects have no fields but those that are described.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object) {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn hold(validator: &Validator, value: &Value, what: &str) {
    let errors: Vec<_> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what} is not as described: {errors:#?}\n{value:#}");
}

/// What a request over REST got.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.body))
    }
}

/// Compares what went over REST with the description.
pub(crate) fn check(method: &Method, path: &str, sent: &[u8], answer: &Answer) {
    let is_json = answer
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|it| it == "application/json");
    if answer.headers.contains_key(header::CONTENT_ENCODING) {
        return;
    }
    let call = DESCRIPTION.call(method, path);
    match (answer.status, call) {
        (StatusCode::OK, Some((name, call))) => {
            assert_eq!(is_json, call.answer.is_some(), "{method} {path}");
            if let Some(schema) = &call.answer {
                hold(schema, &answer.json(), &format!("the answer of {method} {path}"));
            }
            COMPARED.with_borrow_mut(|compared| compared.insert(name.clone()));
            // The bare words of Python, bodies without anything and compressed ones are no JSON.
            if let (Some(schema), Ok(sent)) = (&call.request, serde_json::from_slice(sent)) {
                hold(schema, &sent, &format!("the request {method} {path}"));
            }
        }
        (status, _) if is_json && status.as_u16() >= 400 && method != Method::HEAD => {
            hold(
                &DESCRIPTION.error,
                &answer.json(),
                &format!("the refusal of {method} {path}"),
            );
        }
        _ => {}
    }
}
