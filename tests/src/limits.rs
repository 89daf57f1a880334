//! Limits of servers under test.

use std::time::Duration;

use kindex_serve::BodyPace;
use kindex_serve::listen::ConnectionLimits;

/// Waits an hour for a body that somebody holds back, however slowly the machine works meanwhile.
pub fn held_back_bodies() -> ConnectionLimits {
    ConnectionLimits {
        body: BodyPace {
            grace: Duration::from_secs(3600),
            longest: Duration::from_secs(3600),
            ..BodyPace::default()
        },
        ..ConnectionLimits::default()
    }
}
