//! Points in time: seconds and nanoseconds on the wire, RFC 3339 in JSON. Three types that differ in
//! how many digits of a second their JSON shows.

use jiff::Timestamp as Instant;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::rfc3339::{digits_in_threes, parse, render};
use crate::kind::ColumnType;
use crate::value::{ToColumnValue, Value};

macro_rules! time {
    ($(#[$doc:meta])* $name:ident, $digits:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
        pub struct $name {
            /// Seconds since 1970-01-01T00:00:00Z.
            #[prost(int64, tag = "1")]
            pub seconds: i64,
            /// Nanoseconds within the second, 0 to 999,999,999, also before 1970.
            #[prost(int32, tag = "2")]
            pub nanos: i32,
        }

        impl $name {
            /// The same point in time, where jiff has it; its last day is 9999-12-30.
            pub fn instant(&self) -> Option<Instant> {
                Instant::new(self.seconds, self.nanos).ok()
            }
        }

        impl From<Instant> for $name {
            fn from(instant: Instant) -> Self {
                let (seconds, nanos) = (instant.as_second(), instant.subsec_nanosecond());
                // jiff gives both parts the same sign; on the wire nanoseconds count upwards.
                if nanos < 0 {
                    Self { seconds: seconds - 1, nanos: nanos + 1_000_000_000 }
                } else {
                    Self { seconds, nanos }
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match render(self.seconds, self.nanos, $digits(self.nanos)) {
                    Some(text) => serializer.serialize_str(&text),
                    None => Err(serde::ser::Error::custom("time outside of the years 1 to 9999")),
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                match parse(&text) {
                    Some((seconds, nanos)) => Ok(Self { seconds, nanos }),
                    None => {
                        let found = serde::de::Unexpected::Str(&text);
                        Err(serde::de::Error::invalid_value(found, &"an RFC 3339 time"))
                    }
                }
            }
        }

        impl ToColumnValue for $name {
            const TYPE: ColumnType = ColumnType::Time;

            fn to_column_value(&self) -> Value {
                self.instant().map_or(Value::Null, Value::Time)
            }
        }
    };
}

time!(
    /// `google.protobuf.Timestamp`: as many digits as are needed, in threes.
    Timestamp,
    digits_in_threes
);
time!(
    /// Kubernetes' `meta/v1.Time`: whole seconds in JSON; the wire keeps the fraction.
    Time,
    |_| 0
);
time!(
    /// Kubernetes' `meta/v1.MicroTime`: always microseconds in JSON.
    MicroTime,
    |_| 6
);
