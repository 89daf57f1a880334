//! What the query types of all kinds have in common, so that filters, orders and projections can be said once.

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

    /// What was gathered so far.
    fn select(&self) -> &Select;

    /// What was gathered so far, to add to it.
    fn select_mut(&mut self) -> &mut Select;

    /// The same query, with a state that its last condition earned.
    fn into_state<S: State>(self) -> Self::In<S>;
}
