//! What stands before both transports: whether a page of a browser may ask, who calls, when a request is let in, and
//! what is counted of it.

mod cors;

mod request_class;

mod refused;

mod compress;

mod admission;

mod trace;

mod messages;

mod answer;

pub use answer::{Exposure, Front, Parts};
pub use cors::Cors;
pub use refused::refused;
pub(crate) use refused::{detail, over_rest};
