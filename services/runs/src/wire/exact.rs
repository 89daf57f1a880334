//! Messages whose doubles keep every bit: the derived ones leave out a field that equals zero, and with it the sign of
//! -0.0, which the language wants to be sent. <https://protobuf.dev/programming-guides/proto3/#default>

use prost::DecodeError;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, double, int64, message, skip_field, string};
use prost_types::Timestamp;

/// `mlrun.v1.MetricPoint`: one value of a metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricPoint {
    /// Its name.
    pub name: String,
    /// Not negative.
    pub step: i64,
    /// Any double: NaN, infinities and -0.0 are kept to the bit.
    pub value: f64,
    /// The time of receipt if absent.
    pub timestamp: Option<Timestamp>,
}

/// `mlrun.v1.MetricStats`: of all points of the request's range, whatever was thinned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricStats {
    /// Of finite values; NaN without any.
    pub min: f64,
    /// Of finite values; NaN without any.
    pub max: f64,
    /// Of finite values; NaN without any.
    pub mean: f64,
    /// The value of the highest step.
    pub last: f64,
    /// How many points.
    pub count: i64,
}

fn encode_double(tag: u32, value: f64, buffer: &mut impl BufMut) {
    if value.to_bits() != 0 {
        double::encode(tag, &value, buffer);
    }
}

fn double_len(tag: u32, value: f64) -> usize {
    if value.to_bits() == 0 {
        return 0;
    }
    double::encoded_len(tag, &value)
}

impl prost::Message for MetricPoint {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        if !self.name.is_empty() {
            string::encode(1, &self.name, buffer);
        }
        if self.step != 0 {
            int64::encode(2, &self.step, buffer);
        }
        encode_double(3, self.value, buffer);
        if let Some(timestamp) = &self.timestamp {
            message::encode(4, timestamp, buffer);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => string::merge(wire_type, &mut self.name, buffer, context),
            2 => int64::merge(wire_type, &mut self.step, buffer, context),
            3 => double::merge(wire_type, &mut self.value, buffer, context),
            4 => {
                let timestamp = self.timestamp.get_or_insert_with(Timestamp::default);
                message::merge(wire_type, timestamp, buffer, context)
            }
            _ => skip_field(wire_type, tag, buffer, context),
        }
    }

    fn encoded_len(&self) -> usize {
        let name = match self.name.is_empty() {
            true => 0,
            false => string::encoded_len(1, &self.name),
        };
        let step = match self.step {
            0 => 0,
            step => int64::encoded_len(2, &step),
        };
        let timestamp = self.timestamp.as_ref();
        name + step + double_len(3, self.value) + timestamp.map_or(0, |time| message::encoded_len(4, time))
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl prost::Message for MetricStats {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        for (tag, value) in [(1, self.min), (2, self.max), (3, self.mean), (4, self.last)] {
            encode_double(tag, value, buffer);
        }
        if self.count != 0 {
            int64::encode(5, &self.count, buffer);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => double::merge(wire_type, &mut self.min, buffer, context),
            2 => double::merge(wire_type, &mut self.max, buffer, context),
            3 => double::merge(wire_type, &mut self.mean, buffer, context),
            4 => double::merge(wire_type, &mut self.last, buffer, context),
            5 => int64::merge(wire_type, &mut self.count, buffer, context),
            _ => skip_field(wire_type, tag, buffer, context),
        }
    }

    fn encoded_len(&self) -> usize {
        let doubles = [(1, self.min), (2, self.max), (3, self.mean), (4, self.last)];
        let doubles: usize = doubles.iter().map(|(tag, value)| double_len(*tag, *value)).sum();
        match self.count {
            0 => doubles,
            count => doubles + int64::encoded_len(5, &count),
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn minus_zero_and_the_payload_of_nan_cross_the_wire() {
        let nan = f64::from_bits(0xfff8_dead_beef_0001);
        for value in [0.0, -0.0, 1.5, nan, f64::INFINITY, f64::NEG_INFINITY, 5e-324] {
            let point = MetricPoint {
                name: "loss".to_owned(),
                step: 7,
                value,
                timestamp: Some(Timestamp { seconds: 5, nanos: 6 }),
            };
            let bytes = point.encode_to_vec();
            assert_eq!(bytes.len(), point.encoded_len());
            let read = MetricPoint::decode(&*bytes).expect("a point");
            assert_eq!(read.value.to_bits(), value.to_bits());
            assert_eq!(
                (read.name, read.step, read.timestamp),
                (point.name, point.step, point.timestamp)
            );

            let stats = MetricStats {
                min: value,
                max: 1.0,
                mean: value,
                last: value,
                count: 3,
            };
            let bytes = stats.encode_to_vec();
            assert_eq!(bytes.len(), stats.encoded_len());
            let read = MetricStats::decode(&*bytes).expect("statistics");
            for read in [read.min, read.mean, read.last] {
                assert_eq!(read.to_bits(), value.to_bits());
            }
            assert_eq!((read.max, read.count), (1.0, 3));
        }
    }
}
