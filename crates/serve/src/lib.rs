//! What a server over HTTP owes its callers, whatever it serves: a look at whether a page of a browser asks, bodies
//! that come fast enough and fit a budget, places that callers share, and a bound on what is held for watchers that do
//! not read. Knows no Kubernetes, no router and no objects. Decisions are pure and get the time as a parameter; what
//! waits and counts is beside them.

pub mod browser;

mod pace;

pub mod budget;

pub mod body;

pub mod linger;

mod shares;

pub mod gate;

pub mod work;

pub mod cut;

pub mod pages;

mod unread;

mod texts;

pub mod watches;

pub use pace::BodyPace;
