//! Who owns which fields of an object: `metadata.managedFields`, read and written. Knows nothing of how ownership comes
//! about.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::set::FieldSet;
use crate::schema::quote;

/// The managers of updates beyond which the oldest are put together.
const UPDATE_MANAGERS_MAX: usize = 10;
const ANCIENT_CHANGES: &str = "ancient-changes";

/// How fields came to be owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// A manager as far as it is told from others. An applier is the same in all versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) operation: Operation,
    /// The version of updates; none for appliers.
    api_version: Option<String>,
    pub(super) subresource: String,
}

impl Manager {
    pub(super) fn new(name: &str, operation: Operation, api_version: &str, subresource: Option<&str>) -> Self {
        Self {
            name: if name.is_empty() {
                "unknown".to_owned()
            } else {
                name.to_owned()
            },
            operation,
            api_version: (operation == Operation::Update).then(|| api_version.to_owned()),
            subresource: subresource.unwrap_or_default().to_owned(),
        }
    }
}

/// The manager as conflicts name it: `"kubectl" with subresource "status" using v1`.
impl std::fmt::Display for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&quote(&self.name))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", quote(&self.subresource))?;
        }
        match &self.api_version {
            Some(version) => write!(f, " using {version}"),
            None => Ok(()),
        }
    }
}

/// What one manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) set: FieldSet,
    pub(super) api_version: String,
    /// The time of the last change, as it is written.
    pub(super) time: Option<String>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Managers(pub(super) BTreeMap<Manager, Owned>);

impl Managers {
    /// Reads `managedFields`; none when an entry is not in order.
    pub(super) fn read(managed_fields: &Value) -> Option<Self> {
        let mut managers = BTreeMap::new();
        for entry in managed_fields.as_array()? {
            let text = |name: &str| entry.get(name).and_then(Value::as_str);
            let operation = match text("operation")? {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            let api_version = text("apiVersion").filter(|version| !version.is_empty())?;
            if text("fieldsType") != Some("FieldsV1") {
                return None;
            }
            let set = entry
                .get("fieldsV1")
                .map_or_else(|| Some(FieldSet::default()), FieldSet::from_json)?;
            let manager = Manager::new(
                text("manager").unwrap_or(""),
                operation,
                api_version,
                text("subresource"),
            );
            let time = text("time").map(str::to_owned);
            managers.insert(
                manager,
                Owned {
                    set,
                    api_version: api_version.to_owned(),
                    time,
                },
            );
        }
        Some(Self(managers))
    }

    /// Writes `managedFields`: appliers first, then by time, name, version and subresource.
    pub(super) fn into_json(self) -> Value {
        let mut entries: Vec<(Manager, Owned)> = self.0.into_iter().collect();
        entries.sort_by(|(a, x), (b, y)| {
            let key = |manager: &Manager, owned: &Owned| (manager.operation, seconds(owned.time.as_deref()));
            let names = [&a.name, &x.api_version, &a.subresource].cmp(&[&b.name, &y.api_version, &b.subresource]);
            key(a, x).cmp(&key(b, y)).then(names)
        });
        entries
            .into_iter()
            .map(|(manager, owned)| entry(manager, owned))
            .collect()
    }

    /// The length of all sets as text.
    pub(super) fn text_bytes(&self) -> usize {
        self.0.values().map(|owned| owned.set.text_bytes()).sum()
    }

    /// Takes `set` from the fields of every manager but `except`.
    pub(super) fn release(&mut self, set: &FieldSet, except: Option<&Manager>) {
        for (manager, owned) in &mut self.0 {
            if Some(manager) != except {
                owned.set = std::mem::take(&mut owned.set).difference(set);
            }
        }
        self.0.retain(|_, owned| !owned.set.is_empty());
    }

    /// Puts the oldest managers of updates together until there are few enough.
    pub(super) fn cap(&mut self) {
        let mut updaters: Vec<Manager> = self
            .0
            .keys()
            .filter(|manager| manager.operation == Operation::Update)
            .cloned()
            .collect();
        let mut count = updaters.len();
        if count <= UPDATE_MANAGERS_MAX {
            return;
        }
        updaters.sort_by_key(|manager| (seconds(self.0[manager].time.as_deref()), manager.clone()));
        let mut firsts: BTreeMap<String, Manager> = BTreeMap::new();
        for manager in updaters {
            if count <= UPDATE_MANAGERS_MAX {
                break;
            }
            let version = self.0[&manager].api_version.clone();
            let Some(first) = firsts.get(&version) else {
                firsts.insert(version, manager);
                continue;
            };
            let bucket = Manager::new(ANCIENT_CHANGES, Operation::Update, &version, None);
            let bucketed = self.0.remove(&bucket).or_else(|| self.0.remove(first));
            if let (Some(bucketed), Some(mut owned)) = (bucketed, self.0.remove(&manager)) {
                owned.set = owned.set.union(bucketed.set);
                self.0.insert(bucket, owned);
                count -= 1;
            }
        }
    }
}

fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|text| text.parse::<Timestamp>().ok())
        .map_or(0, Timestamp::as_second)
}

fn entry(manager: Manager, owned: Owned) -> Value {
    let mut entry = Map::new();
    entry.insert("manager".to_owned(), json!(manager.name));
    let operation = match manager.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    entry.insert("operation".to_owned(), json!(operation));
    entry.insert("apiVersion".to_owned(), json!(owned.api_version));
    if let Some(time) = &owned.time {
        entry.insert("time".to_owned(), json!(time));
    }
    entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
    entry.insert("fieldsV1".to_owned(), owned.set.into_json());
    if !manager.subresource.is_empty() {
        entry.insert("subresource".to_owned(), json!(manager.subresource));
    }
    entry.into()
}
