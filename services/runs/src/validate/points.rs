//! The points of a request: which of them are kept, with which time and which bits.

use crate::domain::{MetricName, Points, from_wire, warning};
use crate::limits::{self, NameRules};
use crate::refusal::{Code, Refusal};
use crate::wire::MetricColumns;
use crate::wire::v1::ErrorDetail;

/// A timestamp that is so much later than its receipt is replaced by that.
const SKEW_MAX_NS: i64 = 5 * 60 * 1_000_000_000;
/// The bits of a double between the sign and the fraction. None is set in zeros and subnormals.
const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
const SIGN: u64 = 1 << 63;
/// No name of what is kept yet.
const NONE: u32 = u32::MAX;
/// More than a point takes on the wire beside its name.
const POINT_BYTES_MAX: usize = 64;

/// What becomes of a batch that is over its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oversized {
    /// Its first points are stored, the rest is dropped with a warning.
    #[default]
    Cut,
    /// It is refused.
    Refused,
}

/// What is left of the points of a request.
pub(super) struct AcceptedPoints {
    pub(super) points: Points,
    pub(super) warnings: Vec<ErrorDetail>,
}

/// Keeps the points that fit, in their order. `others` is what the request takes beside its points, in bytes.
pub(super) fn keep(
    columns: &MetricColumns,
    others: usize,
    received_at: i64,
    oversized: Oversized,
) -> Result<AcceptedPoints, Refusal> {
    let (fitting, cut) = cut(columns, others);
    let mut warnings = Vec::new();
    if let Some(bound) = cut {
        if oversized == Oversized::Refused {
            let message = format!("metrics.points: a batch has at most {bound}; send smaller batches");
            return Err(Refusal::new(Code::InvalidArgument, "BATCH_TOO_LARGE", message).at("metrics.points"));
        }
        warnings.push(warning::batch_truncated((columns.len() - fitting) as u64, &bound));
    }
    let check = |name: &String| NameRules::Metric.check(name, limits::METRIC_NAME.max).err();
    let faults: Vec<_> = columns.names().iter().map(check).collect();
    let mut kept = vec![NONE; faults.len()];
    let mut points = with_capacity(fitting);
    let mut skewed = (0_u64, 0);
    for place in 0..fitting {
        let name = columns.name_of()[place] as usize;
        if let Some(fault) = faults[name] {
            warnings.push(warning::invalid_metric_name(place, &fault.to_string()));
            continue;
        }
        let step = columns.steps()[place];
        if step < 0 {
            warnings.push(warning::step_negative(place, step));
            continue;
        }
        let sent = columns.times()[place].as_ref();
        let time = sent.map_or(Some(received_at), |time| in_time(from_wire(time), received_at));
        if time.is_none() {
            let first = if skewed.0 == 0 { place } else { skewed.1 };
            skewed = (skewed.0 + 1, first);
        }
        if kept[name] == NONE {
            kept[name] = points.names.len() as u32;
            points.names.push(MetricName::new(columns.names()[name].as_str()));
        }
        points.name_of.push(kept[name]);
        points.steps.push(step);
        points.times.push(time.unwrap_or(received_at));
        points.values.push(flushed(columns.values()[place]));
    }
    if skewed.0 > 0 {
        warnings.push(warning::clock_skew(skewed.0, skewed.1));
    }
    Ok(AcceptedPoints { points, warnings })
}

fn with_capacity(points: usize) -> Points {
    Points {
        names: Vec::new(),
        name_of: Vec::with_capacity(points),
        steps: Vec::with_capacity(points),
        times: Vec::with_capacity(points),
        values: Vec::with_capacity(points),
    }
}

/// How many points come first that fit, and by which bound the rest does not.
fn cut(columns: &MetricColumns, others: usize) -> (usize, Option<String>) {
    let (points_max, bytes_max) = (limits::BATCH_POINTS.max, limits::BATCH_BYTES.max);
    let fitting = columns.len().min(points_max);
    let by_number = (columns.len() > points_max).then(|| format!("{points_max} points"));
    let longest = columns.names().iter().map(String::len).max().unwrap_or_default();
    if others + fitting * (longest + POINT_BYTES_MAX) <= bytes_max {
        return (fitting, by_number);
    }
    let mut bytes = others;
    for place in 0..fitting {
        bytes += columns.point_bytes(place);
        if bytes > bytes_max {
            return (place, Some(format!("{bytes_max} bytes as protobuf")));
        }
    }
    (fitting, by_number)
}

/// A time as it was sent, unless it lies ahead or is none. Old ones are right: what was spooled comes late.
fn in_time(sent: Option<i64>, received_at: i64) -> Option<i64> {
    sent.filter(|time| *time <= received_at.saturating_add(SKEW_MAX_NS))
}

/// Subnormals become the zero of their sign; everything else keeps its bits.
fn flushed(bits: u64) -> u64 {
    if bits & EXPONENT == 0 { bits & SIGN } else { bits }
}
