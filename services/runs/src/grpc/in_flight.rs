//! What a stream holds while it is open: its place, and memory for each message that is not answered yet. Knows neither
//! of them.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Held until it is dropped.
pub(crate) type Reservation = Box<dyn Any + Send>;

/// What one stream holds: an extension of its request. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    place: Option<Reservation>,
    /// Of the messages that were read and not taken up yet, in their order.
    messages: VecDeque<Reservation>,
}

impl InFlight {
    /// A stream with its place.
    pub(crate) fn within(place: impl Any + Send) -> Self {
        let in_flight = Self::default();
        in_flight.state().place = Some(Box::new(place));
        in_flight
    }

    /// Another message was read, and this is held for it.
    pub(crate) fn begin(&self, held: impl Any + Send) {
        self.state().messages.push_back(Box::new(held));
    }

    /// What is held for the next message that is taken up.
    pub(crate) fn next(&self) -> Option<Reservation> {
        self.state().messages.pop_front()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
