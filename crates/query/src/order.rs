//! The order of a query, column by column.

use std::marker::PhantomData;

use super::column::Column;
use super::typed::TypedQuery;
use crate::select::{Direction, Order};

/// A query and the column that it is to be ordered by.
#[must_use = "choose a direction: `.asc()` or `.desc()`"]
pub struct Ordering<Q, C> {
    query: Q,
    column: PhantomData<C>,
}

impl<Q: TypedQuery, C: Column> Ordering<Q, C> {
    /// Orders `query` by column `C`.
    pub fn new(query: Q, _: C) -> Self {
        Self {
            query,
            column: PhantomData,
        }
    }

    /// Smallest first, rows without a value before all others; after any order given before.
    pub fn asc(self) -> Q {
        self.directed(Direction::Ascending)
    }

    /// Largest first, rows without a value after all others; after any order given before.
    pub fn desc(self) -> Q {
        self.directed(Direction::Descending)
    }

    fn directed(self, direction: Direction) -> Q {
        let mut query = self.query;
        query.select_mut().order.push(Order {
            column: C::NAME,
            ty: C::TYPE,
            direction,
        });
        query
    }
}
