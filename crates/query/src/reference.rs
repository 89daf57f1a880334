//! References between kinds as values, and the lookup of the objects that they name. A reference is read from the
//! object's text by the same rule as its columns. Writes no SQL.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::marker::PhantomData;

use kindex_model::kind::{Column, Kind};
use kindex_model::object::Object;
use kindex_model::projection::extract;
use kindex_model::value::Value;

use crate::Reader;
use crate::Stored;

/// A field of the objects that a query of type `From` finds, which names another object.
#[derive(Debug)]
pub struct Reference<From> {
    holder: &'static Kind,
    namespace: &'static str,
    name: &'static str,
    target: Target,
    from: PhantomData<fn() -> From>,
}

/// What kind of object is named.
#[derive(Clone, Copy, Debug)]
enum Target {
    Kind(&'static Kind),
    /// The one of these that the column names.
    KindIn {
        column: &'static str,
        kinds: &'static [&'static Kind],
    },
}

impl<From> Clone for Reference<From> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<From> Copy for Reference<From> {}

impl<From> Reference<From> {
    /// Columns `namespace` and `name` of `holder` name an object of kind `target`.
    pub const fn to(target: &'static Kind, holder: &'static Kind, namespace: &'static str, name: &'static str) -> Self {
        Self {
            holder,
            namespace,
            name,
            target: Target::Kind(target),
            from: PhantomData,
        }
    }

    /// Columns `namespace` and `name` of `holder` name an object of the kind that its column `column`
    /// holds, one of `kinds`.
    pub const fn to_kind_in(
        column: &'static str,
        kinds: &'static [&'static Kind],
        holder: &'static Kind,
        namespace: &'static str,
        name: &'static str,
    ) -> Self {
        Self {
            holder,
            namespace,
            name,
            target: Target::KindIn { column, kinds },
            from: PhantomData,
        }
    }

    /// The object that `object` names; `None` where the reference is absent, or names a kind that is none.
    pub fn of(&self, object: &Object) -> Option<Named> {
        let text = |name| text_of(self.holder, name, object);
        let kind = match self.target {
            Target::Kind(kind) => kind,
            Target::KindIn { column, kinds } => {
                let named = text(column)?;
                kinds.iter().find(|kind| kind.name == named)?
            }
        };
        Some(Named {
            kind,
            namespace: text(self.namespace)?,
            name: text(self.name)?,
        })
    }
}

fn text_of(kind: &Kind, name: &str, object: &Object) -> Option<String> {
    let is_wanted = |column: &&Column| column.name == name;
    let column = kind.columns.iter().find(is_wanted).copied()?;
    match extract(&[column], object, &mut Vec::new()).pop()? {
        Value::Text(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// What a reference names.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its kind.
    pub kind: &'static Kind,
    /// Its namespace; that of the holder where the field names none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The names of one kind, each once.
struct NamesOfKind {
    kind: &'static Kind,
    names: BTreeSet<(String, String)>,
}

impl NamesOfKind {
    fn of(kind: &'static Kind) -> Self {
        Self {
            kind,
            names: BTreeSet::new(),
        }
    }
}

/// Objects by kind and name.
pub(super) struct Found(HashMap<(&'static str, String, String), Stored>);

impl Found {
    /// Looks up what is named: one statement for each kind, whatever the number of names.
    pub(super) async fn look_up<S: Reader + ?Sized>(
        store: &S,
        named: impl IntoIterator<Item = Named>,
    ) -> Result<Self, S::Error> {
        let mut wanted: BTreeMap<&str, NamesOfKind> = BTreeMap::new();
        for named in named {
            let wanted = wanted
                .entry(named.kind.table)
                .or_insert_with(|| NamesOfKind::of(named.kind));
            wanted.names.insert((named.namespace, named.name));
        }
        let mut found = HashMap::new();
        for NamesOfKind { kind, names } in wanted.into_values() {
            let names: Vec<(String, String)> = names.into_iter().collect();
            for stored in store.newest_by_names(kind, &names).await? {
                let metadata = &stored.object.metadata;
                found.insert(
                    (kind.table, metadata.namespace.to_string(), metadata.name.to_string()),
                    stored,
                );
            }
        }
        Ok(Self(found))
    }

    pub(super) fn get(&self, named: &Named) -> Option<&Stored> {
        let key = (named.kind.table, named.namespace.clone(), named.name.clone());
        self.0.get(&key)
    }
}
