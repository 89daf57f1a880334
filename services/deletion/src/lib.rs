//! The deletion graph at work: objects that others refer to go after them, and with them goes what cascades and what
//! they own.
//!
//! [`object`] is an object as far as its deletion is concerned, [`phase_start`] says why it enters a phase, and
//! [`edges`] reads which objects its declared fields name. [`graph`] holds what is known of all objects and collects
//! what concerns one of them; [`decide`] makes one next step of that. These are pure, as [`roots`] is, which finds what
//! an object waits for in the end, and [`vanished`], which finds references that somebody took off by hand.
//! [`peer`] asks the services of objects that ours refer to, each of which has its turns by [`questions`]. [`archive`]
//! knows the objects that left the cluster, and [`answers`] what it has said of them; [`holders`] knows those that
//! nobody finds. A [`cleanup`] removes what an object has outside, and [`cleanup_states`] knows what came of its calls.
//! [`notice`] and [`conditions`] say to people what an object waits for, and [`web`] posts it to a server. [`cluster`]
//! carries a step out, and [`service`] keeps all of it at work on one cluster.
//!
//! Modules are in reading order: each imports only those above it.

pub mod object;

#[cfg(test)]
mod fixture;

pub mod phase_start;

pub mod edges;

pub mod decide;

pub mod graph;

pub mod roots;

pub mod answers;

pub mod questions;

pub mod holders;

pub mod targets;

pub mod cleanup_states;

pub mod cleanup;

pub mod kinds;

pub mod archive;

pub mod metrics;

pub mod notice;

pub mod conditions;

pub mod vanished;

pub mod peer;

pub mod web;

pub mod cluster;

pub mod service;

#[cfg(test)]
mod simulation;
