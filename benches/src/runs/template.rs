//! Batches as bytes, made once; only steps, values and the batch id are written anew for each batch, so that the load
//! program leaves the processor to the server. A batch has 1,000 points of 50 metrics with names of 14 characters, and
//! 20 steps.

use bytes::Bytes;
use prost::Message as _;

use kindex_runs::wire::MetricColumns;
use kindex_runs::wire::v1::{LogMetricsRequest, RunId};

/// Metrics of a run.
pub const METRICS: usize = 50;
/// Points of a batch.
pub const BATCH_POINTS: usize = 1_000;
const STEPS: i64 = (BATCH_POINTS / METRICS) as i64;

/// The first step: from here on, and for longer than any load takes, a step has four bytes in protobuf and seven
/// digits in JSON.
pub const STEP_MIN: i64 = 1 << 21;
const STEP_BYTES: usize = 4;
const STEP_DIGITS: usize = 7;
/// Digits of a value behind `0.`.
const VALUE_DIGITS: usize = 9;
/// Digits of a batch id.
const ID_DIGITS: usize = 12;

/// The name of a metric, of 14 characters.
pub fn metric(number: usize) -> String {
    format!("train/layer_{number:02}")
}

/// Numbers that depend on a seed alone (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Protobuf,
    Json,
}

/// The batches of one run.
#[derive(Clone, Debug)]
pub struct Template {
    form: Form,
    bytes: Vec<u8>,
    /// Where the batch id ends.
    id_end: usize,
    /// Of each point, where its step and its value are.
    places: Vec<(usize, usize)>,
    batches: i64,
    random: Random,
}

impl Template {
    /// A `LogMetricsRequest`.
    ///
    /// # Panics
    /// Never: what is looked for was put in.
    pub fn protobuf(run: &str, seed: u64) -> Self {
        let mut points = MetricColumns::default();
        for (name, step) in places() {
            points.push(&metric(name), STEP_MIN + step, marked(name, step), None);
        }
        let id = "0".repeat(ID_DIGITS);
        let request = LogMetricsRequest {
            run_id: Some(RunId { value: run.to_owned() }),
            metrics: Some(points),
            batch_id: format!("{run}-{id}"),
            sequence: None,
        };
        let bytes = request.encode_to_vec();
        let mut at = 0;
        let mut found = Vec::with_capacity(BATCH_POINTS);
        for (name, step) in places() {
            let value = after(&bytes, at, &marked(name, step).to_bits().to_le_bytes());
            let step_end = after(&bytes, at, &varint(STEP_MIN + step));
            found.push((step_end - STEP_BYTES, value - size_of::<f64>()));
            at = value.max(step_end);
        }
        let id_end = after(&bytes, at, id.as_bytes());
        Self::new(Form::Protobuf, bytes, id_end, found, seed)
    }

    /// The body of `POST /api/v1/ingest/batch`.
    pub fn json(run: &str, seed: u64) -> Self {
        let id = "0".repeat(ID_DIGITS);
        let mut text = format!(r#"{{"run_id":"{run}","batch_id":"{run}-{id}"#);
        let id_end = text.len();
        text.push_str(r#"","metrics":["#);
        let mut found = Vec::with_capacity(BATCH_POINTS);
        for (name, step) in places() {
            if !text.ends_with('[') {
                text.push(',');
            }
            let name = metric(name);
            text.push_str(&format!(r#"{{"name":"{name}","step":{}"#, STEP_MIN + step));
            let step_at = text.len() - STEP_DIGITS;
            text.push_str(&format!(r#","value":0.{}"#, "1".repeat(VALUE_DIGITS)));
            found.push((step_at, text.len() - VALUE_DIGITS));
            text.push('}');
        }
        text.push_str("]}");
        Self::new(Form::Json, text.into_bytes(), id_end, found, seed)
    }

    fn new(form: Form, bytes: Vec<u8>, id_end: usize, places: Vec<(usize, usize)>, seed: u64) -> Self {
        Self {
            form,
            bytes,
            id_end,
            places,
            batches: 0,
            random: Random(seed),
        }
    }

    /// The next batch, with steps behind those of the one before.
    pub fn next_batch(&mut self) -> Bytes {
        self.batches += 1;
        let first = self.first_step();
        decimal(
            self.batches as u64,
            &mut self.bytes[self.id_end - ID_DIGITS..self.id_end],
        );
        for (place, (_, step)) in places().enumerate() {
            let (step_at, value_at) = self.places[place];
            let noise = self.random.number();
            match self.form {
                Form::Protobuf => {
                    self.bytes[step_at..step_at + STEP_BYTES].copy_from_slice(&varint(first + step));
                    // From 1 to 2, with noise in every bit of the fraction.
                    let bits = (1023 << 52) | (noise >> 12);
                    self.bytes[value_at..value_at + size_of::<f64>()].copy_from_slice(&bits.to_le_bytes());
                }
                Form::Json => {
                    decimal((first + step) as u64, &mut self.bytes[step_at..step_at + STEP_DIGITS]);
                    decimal(noise, &mut self.bytes[value_at..value_at + VALUE_DIGITS]);
                }
            }
        }
        self.same()
    }

    /// The batch of before.
    pub fn same(&self) -> Bytes {
        Bytes::copy_from_slice(&self.bytes)
    }

    /// The first step of the batch of before.
    pub fn first_step(&self) -> i64 {
        STEP_MIN + STEPS * (self.batches - 1)
    }
}

/// The metric of each point, and its step within the batch.
fn places() -> impl Iterator<Item = (usize, i64)> {
    (0..STEPS).flat_map(|step| (0..METRICS).map(move |name| (name, step)))
}

/// A value that no other bytes of a batch are like.
fn marked(name: usize, step: i64) -> f64 {
    f64::from_bits(0x3fdb_adc0_ffee_0000 | ((name as u64) << 8) | step as u64)
}

/// Where a part that is there ends, from a place on.
fn after(bytes: &[u8], from: usize, part: &[u8]) -> usize {
    let mut windows = bytes[from..].windows(part.len());
    let at = windows.position(|window| window == part);
    from + at.expect("it was put in") + part.len()
}

fn varint(number: i64) -> [u8; STEP_BYTES] {
    std::array::from_fn(|place| {
        let bits = (number >> (7 * place)) as u8 & 0x7f;
        bits | if place + 1 < STEP_BYTES { 0x80 } else { 0 }
    })
}

/// The last digits of a number, as many as there is room for.
fn decimal(mut number: u64, room: &mut [u8]) {
    for digit in room.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}
