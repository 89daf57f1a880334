//! The interface of all query types, for which filters, orders and projections are written once.

use crate::select::Select;
use crate::state::State;

/// A query type that carries its state.
pub trait TypedQuery: Sized {
    /// How far the query is narrowed.
    type State: State;
    /// The same query in another state.
    type In<S: State>: TypedQuery<State = S, Base = Self::Base>;
    /// The query that every query of the kind begins with.
    type Base: 'static;

    /// The query so far.
    fn select(&self) -> &Select;

    /// The query so far, to add to it.
    fn select_mut(&mut self) -> &mut Select;

    /// The same query in the state that follows from its last condition.
    fn into_state<S: State>(self) -> Self::In<S>;
}
