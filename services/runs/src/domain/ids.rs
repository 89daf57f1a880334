//! Names that were checked against the limits, each a type of its own, and how the server makes ids of runs.

use std::borrow::Borrow;
use std::fmt;

use uuid::Builder;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Of a text that was checked against the limits, or that was stored.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// As it was sent.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// As it was sent.
            #[must_use]
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// The id of a run, unique in the whole service.
    RunId
}
text_id! {
    /// The name of a project.
    ProjectName
}
text_id! {
    /// What a client calls a batch; unique within the run.
    BatchId
}
text_id! {
    /// The name of a metric.
    MetricName
}

/// Makes ids of runs: UUIDs of version 7 that ascend also within a millisecond and when the clock goes back.
#[derive(Clone, Debug, Default)]
pub struct RunIds {
    /// Milliseconds and the counter behind them, 60 bits in all.
    last: u64,
}

impl RunIds {
    const COUNTER_BITS: u32 = 12;

    /// The next id at a time in milliseconds since the epoch.
    pub fn next(&mut self, now_ms: u64, random: [u8; 8]) -> RunId {
        self.last = (now_ms << Self::COUNTER_BITS).max(self.last + 1);
        let counter = (self.last & ((1 << Self::COUNTER_BITS) - 1)) as u16;
        let mut tail = [0; 10];
        tail[..2].copy_from_slice(&counter.to_be_bytes());
        tail[2..].copy_from_slice(&random);
        let uuid = Builder::from_unix_timestamp_millis(self.last >> Self::COUNTER_BITS, &tail).into_uuid();
        RunId::new(uuid.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_runs_are_version_seven_and_ascend() {
        let mut ids = RunIds::default();
        let times = [5, 5, 5, 4, 6, 6, 1_700_000_000_000, 1_700_000_000_000];
        let made: Vec<RunId> = times.iter().map(|ms| ids.next(*ms, [0xff; 8])).collect();
        assert!(made.is_sorted_by(|a, b| a < b), "{made:?}");
        for id in made {
            let uuid = uuid::Uuid::parse_str(id.as_str()).expect("a UUID");
            assert_eq!(uuid.get_version_num(), 7);
        }
    }

    #[test]
    fn more_ids_than_a_millisecond_counts_still_ascend() {
        let mut ids = RunIds::default();
        let made: Vec<RunId> = (0..10_000).map(|_| ids.next(7, [0; 8])).collect();
        assert!(made.is_sorted_by(|a, b| a < b));
    }
}
