//! Whether typed messages are faithful: random objects of every kind through JSON, Rust types and message bytes, held
//! against prost-reflect with the real descriptors; and every trap of message types as Kubernetes JSON by name.
//!
//! Differences that are allowed, and therefore not generated at random but tested by name: unknown fields are dropped;
//! explicit zeros of fields without presence are dropped; times and durations come back in canonical text; numbers in
//! free JSON are doubles on the wire; the content of an `Any` that is not base64 is left out of the bytes.
//! Kinds in several versions are converted between all of them.

mod fixture;
mod kinds;
mod oneofs;
mod oracle;
mod presence;
mod problems;
mod random;
mod samples;
mod scalars;
mod versions;
mod well_known;
