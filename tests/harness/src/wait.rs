//! Waiting for what must happen, in tests: for the condition itself, and long enough for a machine that does a dozen
//! other things. A run that passes never waits for the end of a deadline.

use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything that must happen.
pub const WAIT_MAX: Duration = Duration::from_secs(240);

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(20);

/// Looks again and again until there is what is waited for.
///
/// # Panics
/// When it does not come; the message holds what was seen last.
pub fn wait_until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(
                Instant::now() < deadline,
                "{what} did not come within {WAIT_MAX:?}: {seen}"
            ),
        }
        thread::sleep(PERIOD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_late_is_waited_for() {
        let mut looks = 0;
        let found = wait_until("the third look", || {
            looks += 1;
            if looks == 3 {
                Ok(looks)
            } else {
                Err(format!("look {looks}"))
            }
        });
        assert_eq!(found, 3);
    }
}
