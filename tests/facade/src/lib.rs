//! What the derive of a hand-written kind names of `kindex`, and nothing of the servers: for its own tests, which let
//! the compiler check once more all that they depend on.

pub use kindex_model as model;
