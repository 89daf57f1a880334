//! The interface of all query types, for which filters, orders and projections are written once.

use crate::narrowing::Narrowing;
use crate::select::Select;

/// A query type that carries how far it is narrowed.
pub trait TypedQuery: Sized {
    /// How far the query is narrowed.
    type Narrowing: Narrowing;
    /// The same query, narrowed in another way.
    type In<S: Narrowing>: TypedQuery<Narrowing = S, Base = Self::Base>;
    /// The query that every query of the kind begins with.
    type Base: 'static;

    /// The query so far.
    fn select(&self) -> &Select;

    /// The query so far, to add to it.
    fn select_mut(&mut self) -> &mut Select;

    /// The same query, narrowed as its last condition says.
    fn with_narrowing<S: Narrowing>(self) -> Self::In<S>;
}
