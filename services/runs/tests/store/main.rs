//! The store as its callers see it, on a real file: answers are durable, failures leave nothing behind, and what is
//! read is what a plain model says. Time is a parameter throughout.

mod support;

mod batches;

mod failures;

mod health;

mod life;

mod order;

mod chunks;

mod slices;

mod model;

mod simulation;

mod kill;
