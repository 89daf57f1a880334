//! Validation rules in CEL (`x-kubernetes-validations`): their part of the language, parsed and evaluated. Only what
//! is parsed here is evaluated; the rest is refused by name. Knows nothing of schemas: types are checked beside them.
//! <https://kubernetes.io/docs/reference/using-api/cel/>

mod expression;

mod tokens;

mod parse;

mod evaluate;

pub(super) use evaluate::{Budget, Failure, holds};
pub(super) use expression::{Comparison, Expression, Refusal};
pub(super) use parse::parse;

#[cfg(test)]
mod tests;
