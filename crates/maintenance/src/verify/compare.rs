//! One object against its row, and the row against itself. Pure and total: every pair of
//! an object and a row, present or not, has an answer.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kindex_decide::repair::is_settled_life;
use kindex_model::head::Head;
use kindex_model::kind::{Kind, Platform};
use kindex_model::object::{Metadata, Object};
use kindex_model::projection::{ContentHash, Version, create_time};
use kindex_model::value::Value;
use kindex_query::Life;
use kindex_store::{RowImage, SideRow};

use super::report::{Class, Difference};
use super::versions::{TextVersion, are_same, is_unconverted, text_version};

/// All differences between a row and its object, and between a row and its own text.
///
/// # Guarantees
/// Empty if the ingester has nothing left to do and no other program has written.
pub fn compare(kind: &Kind, platform: &Platform, object: Option<&Object>, row: Option<&RowImage>) -> Vec<Difference> {
    let mut found = Vec::new();
    match (object, row) {
        (None, None) => {}
        (Some(object), None) => {
            let version = object.metadata.resource_version;
            found.push(Difference::new(Class::Missing, format!("version {version} has no row")));
        }
        (None, Some(row)) if row.life() == Life::Live => {
            found.push(Difference::new(
                Class::Orphan,
                "the row is live, but the object is gone",
            ));
        }
        (None, Some(_)) => {}
        (Some(object), Some(row)) => {
            let head = Head::of(object, kind, platform);
            against_object(
                kind,
                platform,
                object,
                row,
                is_settled_life(&head, row.life()),
                &mut found,
            );
        }
    }
    if let Some(row) = row {
        against_itself(kind, row, &mut found);
    }
    found
}

fn against_object(
    kind: &Kind,
    platform: &Platform,
    object: &Object,
    row: &RowImage,
    settled: bool,
    found: &mut Vec<Difference>,
) {
    match row.life() {
        Life::Deleted if !settled => {
            let since = time(row.delete_time);
            let detail = format!("the row is marked deleted since {since}, but the object is present");
            return found.push(Difference::new(Class::Deleted, detail));
        }
        Life::Archived if !settled => {
            let since = time(row.evicted_time);
            let detail = format!("the row is archived since {since}, but the object is present");
            found.push(Difference::new(Class::Evicted, detail));
        }
        Life::Deleted | Life::Archived | Life::Live => {}
    }
    let version = object.metadata.resource_version;
    if i64::try_from(version.0) != Ok(row.res_version) {
        let detail = format!("SQL holds {}, the cluster {version}", row.res_version);
        found.push(Difference::new(Class::Version, detail));
    } else if object.text() != row.text {
        found.extend(payload(kind, platform, object, row));
    }
}

/// Another text of the same resource version, unless it is the same object in another version of the kind.
fn payload(kind: &Kind, platform: &Platform, object: &Object, row: &RowImage) -> Option<Difference> {
    let differing = text_difference(&row.text, object.text());
    let stored = Object::parse_str(&row.text).ok().filter(|_| is_unconverted(kind, row));
    let detail = match stored.map(|stored| are_same(platform, kind, &stored, object)) {
        None => differing,
        Some(Ok(true)) => return None,
        Some(Ok(false)) => format!("{differing}; also after its conversion from {}", row.group_ver),
        Some(Err(error)) => format!("the text in {} cannot be converted: {}", row.group_ver, error.problem),
    };
    Some(Difference::new(Class::Payload, detail))
}

/// The first byte at which two texts differ, with excerpts.
fn text_difference(stored: &str, cluster: &str) -> String {
    let parted = stored
        .bytes()
        .zip(cluster.bytes())
        .position(|(one, other)| one != other);
    let at = parted.unwrap_or_else(|| stored.len().min(cluster.len()));
    let same_json = json(stored).is_some_and(|stored| json(cluster) == Some(stored));
    let note = if same_json {
        "; the same JSON in another spelling"
    } else {
        ""
    };
    format!(
        "from byte {at} on SQL holds {}, the cluster {}{note}",
        excerpt(stored, at),
        excerpt(cluster, at)
    )
}

fn json(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(text).ok()
}

/// A few characters around a byte, quoted.
fn excerpt(text: &str, at: usize) -> String {
    const CHARS: usize = 24;
    let start = (0..=at.min(text.len())).rev().find(|byte| text.is_char_boundary(*byte));
    let rest = &text[start.unwrap_or(0)..];
    match rest {
        "" => "nothing more".to_owned(),
        rest => shown(rest, CHARS),
    }
}

fn shown(text: &str, chars_max: usize) -> String {
    let short: String = text.chars().take(chars_max).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

fn against_itself(kind: &Kind, row: &RowImage, found: &mut Vec<Difference>) {
    for (column, error) in &row.unreadable {
        let extracted = kind.columns.iter().any(|known| known.name == *column);
        let class = if extracted { Class::Column } else { Class::Metadata };
        found.push(Difference::new(class, format!("`{column}` cannot be read: {error}")));
    }
    let object = match Object::parse_str(&row.text) {
        Ok(object) => object,
        Err(error) => {
            let detail = format!("the stored text is not a valid object: {error}");
            return found.push(Difference::new(Class::Payload, detail));
        }
    };
    let version = Version::project(kind, object);
    metadata(kind, row, &version.object.metadata, found);
    match text_version(kind, &version.object.metadata.api_version) {
        TextVersion::Own => projection(kind, row, &version, found),
        // Columns and message are of fields that the kind has no more: its conversion makes them anew.
        TextVersion::Other => {}
        TextVersion::Unknown => {
            let api_version = &version.object.metadata.api_version;
            let detail = format!("{api_version:?} is not a version of this kind");
            found.push(Difference::new(Class::Metadata, detail));
        }
    }
    content_hash(row, version.hash, found);
    let metadata = &version.object.metadata;
    side(Class::Label, &row.labels, &metadata.labels, found);
    side(Class::Annotation, &row.annotations, &metadata.annotations, found);
}

/// What follows from the fields of the kind's own version.
fn projection(kind: &Kind, row: &RowImage, version: &Version, found: &mut Vec<Difference>) {
    columns(kind, row, version, found);
    if row.proto != version.proto {
        let bytes = |proto: &Option<Vec<u8>>| {
            proto
                .as_ref()
                .map_or("NULL".to_owned(), |p| format!("{} bytes", p.len()))
        };
        let detail = format!(
            "{} are not the {} of the text",
            bytes(&row.proto),
            bytes(&version.proto)
        );
        found.push(Difference::new(Class::Proto, detail));
    }
}

fn metadata(kind: &Kind, row: &RowImage, said: &Metadata, found: &mut Vec<Difference>) {
    let group_ver = match said.api_version.as_str() {
        "" => kind.api_version(),
        said => said.to_owned(),
    };
    let texts = [
        ("uid", row.uid.as_str(), &*said.uid.0),
        ("group_ver", &row.group_ver, &group_ver),
        ("namespace", &row.namespace, &said.namespace),
        ("name", &row.name, &said.name),
    ];
    for (column, stored, said) in texts {
        if stored != said {
            let detail = format!("`{column}` is {stored:?}, the text says {said:?}");
            found.push(Difference::new(Class::Metadata, detail));
        }
    }
    if i64::try_from(said.resource_version.0) != Ok(row.res_version) {
        let detail = format!(
            "`res_version` is {}, the text says {}",
            row.res_version, said.resource_version
        );
        found.push(Difference::new(Class::Metadata, detail));
    }
    let created = create_time(said);
    let readable = row.unreadable.iter().all(|(column, _)| *column != "create_time");
    if readable && !row.create_time.is_some_and(|stored| is_rounded_time(stored, created)) {
        let detail = format!("`create_time` is {}, the text says {created}", time(row.create_time));
        found.push(Difference::new(Class::Metadata, detail));
    }
}

fn time(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "NULL".to_owned(), |time| time.to_string())
}

fn columns(kind: &Kind, row: &RowImage, version: &Version, found: &mut Vec<Difference>) {
    let pairs = row.columns.iter().zip(&version.columns);
    for (column, (stored, said)) in kind.columns.iter().zip(pairs) {
        let unreadable = row.unreadable.iter().any(|(name, _)| *name == column.name);
        if !unreadable && !is_rounded(stored, said) {
            let detail = format!("`{}` is {}, the text says {}", column.name, cell(stored), cell(said));
            found.push(Difference::new(Class::Column, detail));
        }
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Text(text) => shown(text, 60),
        Value::Time(time) => time.to_string(),
    }
}

/// Whether a column of lower precision holds the value. `sql = "DATE"`, `"DATETIME(n)"` and
/// `"DECIMAL(p, s)"` round values.
fn is_rounded(stored: &Value, said: &Value) -> bool {
    match (stored, said) {
        (Value::Time(stored), Value::Time(said)) => is_rounded_time(*stored, *said),
        (Value::Double(stored), Value::Double(said)) => is_rounded_number(*stored, *said),
        (stored, said) => stored == said,
    }
}

fn is_rounded_time(stored: Timestamp, said: Timestamp) -> bool {
    const DAY_MICROS: i64 = 86_400_000_000;
    let (stored, said) = (stored.as_microsecond(), said.as_microsecond());
    let mut units = (0..=6).map(|digits| 10_i64.pow(digits)).chain([DAY_MICROS]);
    units.any(|unit| {
        let down = said.div_euclid(unit) * unit;
        let half_up = (said + unit / 2).div_euclid(unit) * unit;
        stored == down || stored == half_up
    })
}

fn is_rounded_number(stored: f64, said: f64) -> bool {
    const DIGITS_MAX: usize = 15;
    let rounded = |digits: usize| format!("{said:.digits$}").parse::<f64>() == Ok(stored);
    stored == said || (0..=DIGITS_MAX).any(rounded)
}

fn content_hash(row: &RowImage, said: ContentHash, found: &mut Vec<Difference>) {
    let stored = row.content_hash.as_deref();
    let detail = match stored.map(ContentHash::from_bytes) {
        None => "NULL: another program wrote the row".to_owned(),
        Some(None) => "not a hash of ours".to_owned(),
        Some(Some(stored)) if stored == said => return,
        Some(Some(stored)) => {
            let parts = [
                ("payload", stored.payload != said.payload),
                ("labels", stored.labels != said.labels),
                ("annotations", stored.annotations != said.annotations),
            ];
            let wrong: Vec<&str> = parts
                .iter()
                .filter(|(_, wrong)| *wrong)
                .map(|(part, _)| *part)
                .collect();
            format!("not that of the text's {}", wrong.join(", "))
        }
    };
    found.push(Difference::new(Class::ContentHash, detail));
}

fn side(class: Class, stored: &[SideRow], said: &BTreeMap<String, String>, found: &mut Vec<Difference>) {
    let mut rows: BTreeMap<&str, Vec<Option<&str>>> = BTreeMap::new();
    for (key, value) in stored {
        rows.entry(key).or_default().push(value.as_deref());
    }
    for (key, value) in said {
        let detail = match rows.remove(key.as_str()).as_deref() {
            None => format!("{key:?} has no row"),
            Some([Some(stored)]) if *stored == value => continue,
            Some([Some(stored)]) => format!("{key:?} is {}, the text says {}", shown(stored, 60), shown(value, 60)),
            Some([None]) => format!("{key:?} is NULL, the text says {}", shown(value, 60)),
            Some(several) => format!("{key:?} has {} rows", several.len()),
        };
        found.push(Difference::new(class, detail));
    }
    for (key, values) in rows {
        let detail = format!("{key:?} has {} too many, the text lacks it", rows_word(values.len()));
        found.push(Difference::new(class, detail));
    }
}

fn rows_word(count: usize) -> String {
    match count {
        1 => "a row".to_owned(),
        count => format!("{count} rows"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_column_of_lower_precision_is_no_difference() {
        let said = time("2026-01-31T23:59:59.987654321Z");
        for stored in [
            "2026-01-31T23:59:59.987654Z",
            "2026-01-31T23:59:59.988Z",
            "2026-02-01T00:00:00Z",
            "2026-01-31T23:59:59Z",
            "2026-01-31T00:00:00Z",
        ] {
            assert!(is_rounded_time(time(stored), said), "{stored}");
        }
        assert!(!is_rounded_time(time("2026-01-31T23:59:58Z"), said));
        assert!(!is_rounded_time(time("2026-01-31T23:59:59.987655Z"), said));
        assert!(is_rounded_number(0.2, 0.16));
        assert!(!is_rounded_number(0.3, 0.16));
    }

    #[test]
    fn texts_part_inside_of_a_character_without_harm() {
        let detail = text_difference("{\"a\":\"é\"}", "{\"a\":\"è\"}");
        assert!(detail.contains("from byte 7 on SQL holds \"é\\\"}\""), "{detail}");
        assert!(text_difference("{\"a\": 1}", "{\"a\":1}").contains("the same JSON"));
        assert!(text_difference("{}", "{}x").contains("nothing more"));
    }
}
