//! `mlrun.v1.MetricBatch`, read into columns: a message of ten thousand points that each repeat a name becomes a few
//! vectors, with each name once. Says on the wire what the message of the file says.

use std::collections::HashMap;
use std::fmt;

use prost::DecodeError;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{
    DecodeContext, WireType, check_wire_type, decode_key, decode_varint, double, encode_key, encode_varint,
    encoded_len_varint, int64, key_len, skip_field,
};
use prost_types::Timestamp;

use super::exact::MetricPoint;

/// The field of the batch.
const POINTS: u32 = 1;
/// The fields of a point.
const NAME: u32 = 1;
const STEP: u32 = 2;
const VALUE: u32 = 3;
const TIMESTAMP: u32 = 4;

/// The points of a request in their order; all vectors but `names` have the same length.
#[derive(Clone, Default)]
pub struct MetricColumns {
    names: Vec<String>,
    name_of: Vec<u32>,
    steps: Vec<i64>,
    /// `f64::to_bits`.
    values: Vec<u64>,
    times: Vec<Option<Timestamp>>,
    known: HashMap<String, u32>,
    /// For each name the one that followed it last: points of one step come in one order.
    next: Vec<u32>,
}

/// A point, as it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its step.
    pub step: i64,
    /// The bits of its value.
    pub value: u64,
    /// Its time.
    pub time: Option<&'a Timestamp>,
}

impl MetricColumns {
    /// How many points there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Each name once, in the order of its first point.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// For each point the place of its name in `names`.
    #[must_use]
    pub fn name_of(&self) -> &[u32] {
        &self.name_of
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[i64] {
        &self.steps
    }

    /// The bits of the values.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// The times.
    #[must_use]
    pub fn times(&self) -> &[Option<Timestamp>] {
        &self.times
    }

    /// A point.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<Sent<'_>> {
        let name = *self.name_of.get(place)?;
        Some(Sent {
            name: &self.names[name as usize],
            step: self.steps[place],
            value: self.values[place],
            time: self.times[place].as_ref(),
        })
    }

    /// All points.
    pub fn iter(&self) -> impl Iterator<Item = Sent<'_>> {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    /// Appends a point.
    pub fn push(&mut self, name: &str, step: i64, value: f64, time: Option<Timestamp>) {
        let name = self.place_of(name);
        self.append(name, step, value.to_bits(), time);
    }

    /// Of the canonical message, how many bytes a point takes, with what stands before it.
    #[must_use]
    pub fn point_bytes(&self, place: usize) -> usize {
        self.get(place).map_or(0, |point| {
            let length = point_len(&point);
            key_len(POINTS) + encoded_len_varint(length as u64) + length
        })
    }

    fn append(&mut self, name: u32, step: i64, value: u64, time: Option<Timestamp>) {
        self.name_of.push(name);
        self.steps.push(step);
        self.values.push(value);
        self.times.push(time);
    }

    /// The place of a name, found without a search where it follows the name that it followed before.
    fn place_of(&mut self, name: &str) -> u32 {
        let last = self.name_of.last().copied();
        if let Some(guess) = last.and_then(|last| self.next.get(last as usize))
            && self.names[*guess as usize] == name
        {
            return *guess;
        }
        let place = match self.known.get(name) {
            Some(place) => *place,
            None => {
                let place = u32::try_from(self.names.len()).expect("a request has less than 2^32 points");
                self.names.push(name.to_owned());
                self.known.insert(name.to_owned(), place);
                self.next.push(0);
                place
            }
        };
        if let Some(last) = last {
            self.next[last as usize] = place;
        }
        place
    }

    /// Reads one point, which is the whole text.
    fn read(&mut self, mut point: &[u8], context: &DecodeContext) -> Result<(), DecodeError> {
        let (mut name, mut step, mut value, mut time) = ("", 0, 0_u64, None);
        while !point.is_empty() {
            let (tag, wire_type) = decode_key(&mut point)?;
            match tag {
                NAME => {
                    let text = std::str::from_utf8(delimited(wire_type, &mut point)?);
                    name = text.map_err(|_| malformed("the name of a point is not UTF-8"))?;
                }
                STEP => int64::merge(wire_type, &mut step, &mut point, context.clone())?,
                VALUE => {
                    let mut number = 0.0;
                    double::merge(wire_type, &mut number, &mut point, context.clone())?;
                    value = number.to_bits();
                }
                TIMESTAMP => {
                    let time = time.get_or_insert_with(Timestamp::default);
                    prost::encoding::message::merge(wire_type, time, &mut point, context.clone())?;
                }
                _ => skip_field(wire_type, tag, &mut point, context.clone())?,
            }
        }
        let name = self.place_of(name);
        self.append(name, step, value, time);
        Ok(())
    }
}

/// The bytes of a field, which are cut off.
fn delimited<'a>(wire_type: WireType, buffer: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    check_wire_type(WireType::LengthDelimited, wire_type)?;
    let length = usize::try_from(decode_varint(buffer)?).map_err(|_| malformed("a length is too large"))?;
    let (field, rest) = buffer
        .split_at_checked(length)
        .ok_or_else(|| malformed("a field is longer than what holds it"))?;
    *buffer = rest;
    Ok(field)
}

fn malformed(what: &'static str) -> DecodeError {
    #[allow(deprecated)]
    DecodeError::new(what)
}

/// Fields that have their default are left out, as the language says.
fn point_len(point: &Sent<'_>) -> usize {
    let mut length = 0;
    if !point.name.is_empty() {
        length += key_len(NAME) + encoded_len_varint(point.name.len() as u64) + point.name.len();
    }
    if point.step != 0 {
        length += int64::encoded_len(STEP, &point.step);
    }
    if point.value != 0 {
        length += key_len(VALUE) + 8;
    }
    if let Some(time) = point.time {
        length += prost::encoding::message::encoded_len(TIMESTAMP, time);
    }
    length
}

impl prost::Message for MetricColumns {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        for point in self.iter() {
            encode_key(POINTS, WireType::LengthDelimited, buffer);
            encode_varint(point_len(&point) as u64, buffer);
            if !point.name.is_empty() {
                encode_key(NAME, WireType::LengthDelimited, buffer);
                encode_varint(point.name.len() as u64, buffer);
                buffer.put_slice(point.name.as_bytes());
            }
            if point.step != 0 {
                int64::encode(STEP, &point.step, buffer);
            }
            if point.value != 0 {
                encode_key(VALUE, WireType::SixtyFourBit, buffer);
                buffer.put_u64_le(point.value);
            }
            if let Some(time) = point.time {
                prost::encoding::message::encode(TIMESTAMP, time, buffer);
            }
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != POINTS {
            return skip_field(wire_type, tag, buffer, context);
        }
        check_wire_type(WireType::LengthDelimited, wire_type)?;
        let length = usize::try_from(decode_varint(buffer)?).map_err(|_| malformed("a length is too large"))?;
        if length > buffer.remaining() {
            return Err(malformed("a point is longer than the message"));
        }
        // Nearly always the whole message is one piece.
        if let Some(point) = buffer.chunk().get(..length) {
            self.read(point, &context)?;
            buffer.advance(length);
            return Ok(());
        }
        let point = buffer.copy_to_bytes(length);
        self.read(&point, &context)
    }

    fn encoded_len(&self) -> usize {
        (0..self.len()).map(|place| self.point_bytes(place)).sum()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl PartialEq for MetricColumns {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for MetricColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<MetricPoint> for MetricColumns {
    fn from_iter<T: IntoIterator<Item = MetricPoint>>(points: T) -> Self {
        let mut columns = Self::default();
        for MetricPoint {
            name,
            step,
            value,
            timestamp,
        } in points
        {
            columns.push(&name, step, value, timestamp);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost::encoding::string;

    use super::*;

    /// The message as the file has it.
    #[derive(Clone, PartialEq, prost::Message)]
    struct Plain {
        #[prost(message, repeated, tag = "1")]
        points: Vec<MetricPoint>,
    }

    fn points() -> Vec<MetricPoint> {
        let time = |seconds, nanos| Some(Timestamp { seconds, nanos });
        let values = [
            1.5,
            0.0,
            -0.0,
            f64::INFINITY,
            f64::from_bits(0x7ff8_dead_beef_0001),
            5e-324,
        ];
        let times = [
            None,
            time(0, 0),
            time(1_800_000_000, 999_999_999),
            time(-5, -5),
            time(i64::MAX, i32::MIN),
        ];
        let names = ["loss", "train/accuracy", "", "l\u{f6}ss", "loss"];
        let mut points = Vec::new();
        for (place, value) in values.into_iter().cycle().take(60).enumerate() {
            points.push(MetricPoint {
                name: names[place % names.len()].to_owned(),
                step: [0, 1, -1, i64::MAX, i64::MIN][place % 5 * 2 % 5],
                value,
                timestamp: times[place % 7 % 5],
            });
        }
        points
    }

    #[test]
    fn columns_are_the_message_of_the_file_to_the_byte() {
        let plain = Plain { points: points() };
        let columns: MetricColumns = points().into_iter().collect();
        let bytes = plain.encode_to_vec();
        assert_eq!(columns.encode_to_vec(), bytes);
        assert_eq!(columns.encoded_len(), bytes.len());
        let read = MetricColumns::decode(&*bytes).expect("points");
        assert_eq!(read, columns);
        assert_eq!(read.names(), ["loss", "train/accuracy", "", "l\u{f6}ss"]);
        for (sent, read) in points().iter().zip(read.iter()) {
            assert_eq!(sent.value.to_bits(), read.value);
            assert_eq!(
                (sent.name.as_str(), sent.step, sent.timestamp.as_ref()),
                (read.name, read.step, read.time)
            );
        }
    }

    #[test]
    fn unknown_fields_are_skipped_and_the_last_of_a_field_counts() {
        let mut point = Vec::new();
        string::encode(NAME, &"first".to_owned(), &mut point);
        string::encode(9, &"unknown".to_owned(), &mut point);
        string::encode(NAME, &"last".to_owned(), &mut point);
        double::encode(VALUE, &2.0, &mut point);
        let mut message = Vec::new();
        int64::encode(7, &1, &mut message);
        encode_key(POINTS, WireType::LengthDelimited, &mut message);
        encode_varint(point.len() as u64, &mut message);
        message.extend(point);
        let read = MetricColumns::decode(&*message).expect("a point");
        let expected = Sent {
            name: "last",
            step: 0,
            value: 2.0_f64.to_bits(),
            time: None,
        };
        assert_eq!(read.iter().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn no_bytes_make_it_panic_and_it_reads_what_the_plain_message_reads() {
        let bytes = Plain { points: points() }.encode_to_vec();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            let mut broken = bytes.clone();
            for _ in 0..3 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let at = (random >> 33) as usize % broken.len();
                broken[at] = random as u8;
            }
            broken.truncate((random >> 20) as usize % (broken.len() + 1));
            let columns = MetricColumns::decode(&*broken).ok();
            let plain = Plain::decode(&*broken).ok();
            let plain = plain.map(|plain| plain.points.into_iter().collect::<MetricColumns>());
            assert_eq!(columns, plain);
        }
    }
}
