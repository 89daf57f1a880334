//! Objects of one fixed shape: about 2 KiB of JSON, 1 KiB of message, 5 labels, 3 annotations,
//! 4 extracted columns, random uids. Made before any clock runs.

use std::sync::Arc;

use jiff::Timestamp;
use kindex_model::kind::{Column, ColumnType, Encoded, Key, Kind, Platform, Registry};
use kindex_model::object::Object;
use kindex_model::projection::Version;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

/// Labels of each object.
pub const LABELS: usize = 5;
/// Annotations of each object.
pub const ANNOTATIONS: usize = 3;

const fn column(name: &'static str, path: &'static [&'static str], ty: ColumnType) -> Column {
    Column {
        name,
        path,
        ty,
        own_namespace: false,
    }
}

const NAME: ColumnType = ColumnType::Text { chars: 255 };

/// The kind that is written. By hand, so that figures stay comparable whatever becomes of the emitted kinds.
pub static RUN: Kind = Kind {
    name: "Run",
    group: "bench.kindex",
    version: "v1",
    plural: "runs",
    singular: "run",
    table: "run",
    columns: &[
        column("pipeline_namespace", &["spec", "pipeline", "namespace"], NAME),
        column("pipeline_name", &["spec", "pipeline", "name"], NAME),
        column("state", &["status", "state"], NAME),
        column("end_time", &["status", "endTime"], ColumnType::Time),
    ],
    keys: &[Key {
        name: "run_namespace_name",
        columns: &["namespace", "name"],
    }],
    encode,
    ..Kind::EMPTY
};

/// The kind with its tables.
pub static REGISTRY: Registry = Registry {
    platform: Platform {
        group: "bench.kindex",
        version: "v1",
        finalizer: "bench/Ingester",
        deleting: "bench/Deleting",
        immutable: "bench/Immutable",
        restored_from: "test/RestoredFrom",
        ..Platform::EMPTY
    },
    kinds: &[&RUN],
    schemas: &[
        ("mysql", include_str!("run.sql")),
        ("sqlite", include_str!("run.sqlite.sql")),
    ],
    ..Registry::EMPTY
};

/// A message is about half as long as its JSON.
fn encode(text: &str) -> Encoded {
    Encoded {
        proto: Some(text.bytes().step_by(2).collect()),
        problems: Vec::new(),
    }
}

/// The same objects for the same seed: first as created, then with another status.
pub struct Objects {
    /// As created.
    pub created: Vec<Arc<Version>>,
    /// The same objects later: version and status differ, labels and annotations do not.
    pub finished: Vec<Arc<Version>>,
}

/// Makes so many objects.
pub fn objects(count: usize, seed: u64) -> Objects {
    let mut random = StdRng::seed_from_u64(seed);
    let heads: Vec<Head> = (0..count).map(|index| Head::new(index, &mut random)).collect();
    let made = |finished| heads.iter().map(|head| head.version(finished)).collect();
    Objects {
        created: made(false),
        finished: made(true),
    }
}

struct Head {
    index: usize,
    uid: String,
    filler: String,
}

impl Head {
    fn new(index: usize, random: &mut StdRng) -> Self {
        let high: u64 = random.random();
        let low: u64 = random.random();
        let digits = format!("{high:016x}{low:016x}");
        let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
        let uid = format!("{a}-{b}-{c}-{}-{}", &digits[16..20], &digits[20..]);
        let filler = (0..1_100).map(|_| char::from(random.random_range(b'a'..=b'z')));
        Self {
            index,
            uid,
            filler: filler.collect(),
        }
    }

    fn version(&self, finished: bool) -> Arc<Version> {
        let index = self.index;
        let status = if finished {
            json!({"state": "PIPELINE_RUN_STATE_SUCCEEDED", "endTime": "2024-05-06T07:08:09Z"})
        } else {
            json!({"state": "PIPELINE_RUN_STATE_RUNNING"})
        };
        let text = json!({
            "apiVersion": "bench.kindex/v1",
            "kind": "Run",
            "metadata": {
                "namespace": format!("team-{}", index % 50),
                "name": format!("run-{index:08}"),
                "uid": self.uid,
                "resourceVersion": (index + if finished { 100_000_000 } else { 1 }).to_string(),
                "creationTimestamp": "2024-05-06T06:00:00Z",
                "labels": {
                    "app.kubernetes.io/name": "trainer",
                    "app.kubernetes.io/instance": format!("trainer-{}", index % 100),
                    "michelangelo/UpdateTimestamp": format!("{}", 1_714_978_800 + index),
                    "pipeline": format!("pipeline-{}", index % 500),
                    "team": format!("team-{}", index % 50),
                },
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": &self.filler[..300],
                    "michelangelo/owner": format!("user-{}@example.org", index % 200),
                    "michelangelo/trace": self.uid,
                },
            },
            "spec": {
                "pipeline": {"namespace": "shared", "name": format!("pipeline-{}", index % 500)},
                "parameters": self.filler,
            },
            "status": status,
        });
        let object = Object::parse_str(&text.to_string()).expect("it is an object");
        Version::project(&RUN, object)
    }
}

/// A time as MySQL reads it.
pub fn sql_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statements that make the tables of Kindex itself.
    fn bookkeeping(schema: &str) -> Vec<String> {
        let statements = schema.split_inclusive(";\n").map(|statement| {
            let lines = statement
                .lines()
                .filter(|line| !line.is_empty() && !line.starts_with("--"));
            lines.collect::<Vec<_>>().join("\n")
        });
        let mut statements: Vec<String> = statements.filter(|statement| statement.contains(" `kindex_")).collect();
        statements.sort_unstable();
        statements
    }

    #[test]
    fn the_tables_of_kindex_itself_are_those_that_the_generator_emits() {
        let emitted = kindex_generated::registry();
        assert_eq!(REGISTRY.schemas.len(), emitted.schemas.len());
        for (dialect, written) in REGISTRY.schemas {
            let emitted = bookkeeping(emitted.schema(dialect).expect("a dialect of the generator"));
            assert!(emitted.len() > 10, "they are found: {emitted:?}");
            assert_eq!(bookkeeping(written), emitted);
        }
    }
}
