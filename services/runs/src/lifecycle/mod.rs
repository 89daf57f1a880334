//! The life of a run: which call is allowed in which state, who may resume it, how it ends, and when silence means that
//! it has crashed. Pure, with the time as a parameter.

pub(crate) mod refusals;

mod table;

mod tokens;

mod open;

mod finish;

mod silence;

pub(crate) use finish::finish_status;
pub use finish::{Ending, finish};
pub use open::{Opening, RunFacts, open};
pub use silence::{SilenceRules, Watch};
pub use table::{Call, Rule, permit, rule};
pub use tokens::Tokens;

#[cfg(test)]
mod tests;
