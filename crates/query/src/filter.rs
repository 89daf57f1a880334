//! Comparisons of one column. The column determines how far the query is narrowed after a comparison.

use std::marker::PhantomData;

use kindex_model::kind::Comparison;
use kindex_model::value::Value;

use super::column::{ByName, Column, EnumColumn, TextColumn};
use super::narrowing::Narrowing;
use super::typed::TypedQuery;
use crate::select::Condition;

/// A column of a query, to be compared.
#[must_use = "a column alone filters nothing: call a comparison such as `.eq(…)`"]
pub struct Filter<Q, C> {
    query: Q,
    column: PhantomData<C>,
}

/// The query `Q` after column `C` was compared with something.
type Compared<Q, C> = <Q as TypedQuery>::In<<C as Column>::Narrowed<<Q as TypedQuery>::Narrowing>>;
/// The query `Q` after a condition on column `C` that no key can serve.
type Filtered<Q, C> = <Q as TypedQuery>::In<<<Q as TypedQuery>::Narrowing as Narrowing>::Filtered<C>>;

impl<Q: TypedQuery, C: Column> Filter<Q, C> {
    /// Selects column `C` of `query` for a comparison.
    pub fn new(query: Q) -> Self {
        Self {
            query,
            column: PhantomData,
        }
    }

    /// The column holds this value. MySQL and MariaDB pass over spaces at the end of a text.
    pub fn eq(self, operand: C::Operand<'_>) -> Compared<Q, C> {
        self.compare(Comparison::Equal, C::bind(operand))
    }

    /// The column holds one of these values; none of them match nothing.
    pub fn one_of<'a>(self, operands: impl IntoIterator<Item = C::Operand<'a>>) -> Compared<Q, C> {
        let values = operands.into_iter().map(C::bind).collect();
        self.add(Condition::OneOf {
            column: C::NAME,
            values,
        })
    }

    /// The column is less.
    pub fn lt(self, operand: C::Operand<'_>) -> Compared<Q, C> {
        self.compare(Comparison::Less, C::bind(operand))
    }

    /// The column is less or equal.
    pub fn le(self, operand: C::Operand<'_>) -> Compared<Q, C> {
        self.compare(Comparison::LessOrEqual, C::bind(operand))
    }

    /// The column is greater.
    pub fn gt(self, operand: C::Operand<'_>) -> Compared<Q, C> {
        self.compare(Comparison::Greater, C::bind(operand))
    }

    /// The column is greater or equal.
    pub fn ge(self, operand: C::Operand<'_>) -> Compared<Q, C> {
        self.compare(Comparison::GreaterOrEqual, C::bind(operand))
    }

    /// The column holds another value. Rows without a value do not match, as in SQL.
    pub fn ne(self, operand: C::Operand<'_>) -> Filtered<Q, C> {
        let condition = Condition::Compare {
            column: C::NAME,
            comparison: Comparison::NotEqual,
            value: C::bind(operand),
        };
        self.add(condition)
    }

    /// The column holds no value: the field is absent or could not be read.
    pub fn is_null(self) -> Filtered<Q, C> {
        self.add(Condition::Null { column: C::NAME })
    }

    /// The column holds a value.
    pub fn is_not_null(self) -> Filtered<Q, C> {
        self.add(Condition::NotNull { column: C::NAME })
    }

    /// This column and `Second`, the other half of the same field, hold these values.
    pub fn eq_both<Second: Column>(self, first: C::Operand<'_>, second: Second::Operand<'_>) -> Compared<Q, C> {
        let mut query = self.query;
        let conditions = &mut query.select_mut().conditions;
        conditions.push(Condition::equal(C::NAME, C::bind(first)));
        conditions.push(Condition::equal(Second::NAME, Second::bind(second)));
        query.with_narrowing()
    }

    fn compare(self, comparison: Comparison, value: Value) -> Compared<Q, C> {
        self.add(Condition::Compare {
            column: C::NAME,
            comparison,
            value,
        })
    }

    fn add<S: Narrowing>(self, condition: Condition) -> Q::In<S> {
        let mut query = self.query;
        query.select_mut().conditions.push(condition);
        query.with_narrowing()
    }
}

impl<Q: TypedQuery, C: TextColumn> Filter<Q, C> {
    /// The column begins with this text.
    pub fn starts_with(self, prefix: &str) -> Compared<Q, C> {
        self.add(Condition::StartsWith {
            column: C::NAME,
            prefix: prefix.to_owned(),
        })
    }
}

impl<Q: TypedQuery, C: EnumColumn> Filter<Q, C> {
    /// The column as the text that SQL holds, for names that the enum does not know: those
    /// of a newer producer are stored as they came.
    pub fn by_name(self) -> Filter<Q, ByName<C>> {
        Filter::new(self.query)
    }
}
