//! One step: from the kind's own version to another, or back. Every field that differs is taken out, then every field
//! is put in that the new version has a place for; what would be lost on the way back is kept.

use std::cmp::Reverse;

use kindex_model::kind::Version;

use super::conversion_data::Values;
use super::pair::{Direction, Pair, are_same, pairs};
use super::tree::{Node, Path, Problem};

/// Changes `object` in the direction that it says, except for `apiVersion`. `carried` is what was kept for the version
/// that is made; what is to be kept for the version that is left is returned.
pub(crate) fn step(
    object: &mut Node,
    version: &Version,
    direction: Direction,
    mut carried: Values,
) -> Result<Values, Problem> {
    let mut kept = Values::new();
    let pairs = pairs(version, direction);
    let mut fields = take_out(object, &pairs, &mut kept)?;
    fields.sort_by_key(|field| writing_order(field, &carried));
    for field in fields {
        let carried = field.pair.to.and_then(|to| carried.remove(&to.join(".")));
        let written = written(object, &field, carried)?;
        if let (Some(to), Some(text)) = (field.pair.to, &written) {
            let made = object.put(to, Node::of(text.as_str()))?;
            kept.extend(made_in_both(&made, to, &pairs).map(|path| (path.join("."), None)));
        }
        let back = field.pair.back(written.as_deref())?;
        let back = back.filter(|_| written.is_some() || field.has_parent);
        if let Some(from) = field.pair.from
            && !are_same(back.as_deref(), field.read.as_deref())
        {
            kept.insert(from.join("."), field.read);
        }
    }
    put_back(object, carried, &pairs)?;
    Ok(kept)
}

/// A field that differs, and what the version that is left has of it.
struct Field {
    pair: Pair,
    read: Option<String>,
    /// Whether the object is there that the value is in, or would be in.
    has_parent: bool,
}

/// Takes all fields out that differ, with what is in the way of those that will be put in.
fn take_out(object: &mut Node, pairs: &[Pair], kept: &mut Values) -> Result<Vec<Field>, Problem> {
    let mut fields = Vec::new();
    for pair in pairs {
        let has_parent = pair.from.map_or(Ok(false), |from| has_parent(object, from))?;
        fields.push(Field {
            pair: *pair,
            read: None,
            has_parent,
        });
    }
    fields.sort_by_key(|field| Reverse(field.pair.from.map(<[_]>::len)));
    for field in &mut fields {
        let Some(from) = field.pair.from else { continue };
        let Some(read) = object.take(from)? else { continue };
        field.read = Some(read.to_string());
        drop_emptied(object, from, pairs)?;
    }
    // A field that the version does not know may be where the other one has its own.
    let mut places: Vec<&Path> = pairs.iter().filter_map(|pair| pair.to).collect();
    places.sort_by_key(|place| place.len());
    for place in places {
        if let Some(unknown) = object.take(place)? {
            kept.insert(place.join("."), Some(unknown.to_string()));
        }
    }
    Ok(fields)
}

/// Objects before the fields in them, and what follows from nothing once it is known which objects are there.
fn writing_order(field: &Field, carried: &Values) -> (bool, Option<usize>) {
    let is_carried = |to: &Path| carried.contains_key(&to.join("."));
    let to = field.pair.to;
    let follows = field.read.is_some() || to.is_some_and(is_carried);
    (!follows, to.map(<[_]>::len))
}

/// Objects that the other version has no place for go with the last field in them: they are made again with it.
fn drop_emptied(object: &mut Node, from: &Path, pairs: &[Pair]) -> Result<(), Problem> {
    let outermost = pairs
        .iter()
        .filter(|pair| pair.to.is_none())
        .filter_map(|pair| pair.from)
        .find(|outer| outer.len() < from.len() && from.starts_with(outer));
    let Some(outermost) = outermost else {
        return Ok(());
    };
    for length in (outermost.len()..from.len()).rev() {
        if !object.at(&from[..length])?.map_or(Ok(false), Node::is_empty)? {
            break;
        }
        object.take(&from[..length])?;
    }
    Ok(())
}

/// The value that a field has in the version that is made: the one that was kept for it, as long as what the other
/// version shows of it is unchanged, and else what follows from the value read.
fn written(object: &mut Node, field: &Field, carried: Option<Option<String>>) -> Result<Option<String>, Problem> {
    let (pair, read) = (&field.pair, field.read.as_deref());
    let Some(to) = pair.to else {
        return Ok(None);
    };
    let written = match carried {
        Some(carried) if are_same(pair.back(carried.as_deref())?.as_deref(), read) => carried,
        Some(_) | None => pair.value(read)?,
    };
    // As with the defaults of a schema, a value that does not come from the object does not make what it is in.
    if read.is_none() && !has_parent(object, to)? {
        return Ok(None);
    }
    Ok(written)
}

fn has_parent(object: &mut Node, path: &[&str]) -> Result<bool, Problem> {
    let parent = &path[..path.len().saturating_sub(1)];
    Ok(object.at(parent)?.map_or(Ok(false), Node::is_object)?)
}

/// Of the objects that were made, those that both versions have: on the way back they are emptied and stay.
fn made_in_both<'p>(made: &[usize], to: &'p Path, pairs: &[Pair]) -> impl Iterator<Item = &'p [&'static str]> {
    let of_the_new_alone: Vec<&Path> = pairs
        .iter()
        .filter(|pair| pair.from.is_none())
        .filter_map(|pair| pair.to)
        .collect();
    let made: Vec<&'p [&'static str]> = made.iter().map(|length| &to[..*length]).collect();
    made.into_iter()
        .filter(move |path| !of_the_new_alone.iter().any(|outer| path.starts_with(outer)))
}

/// What was kept and belongs to no field that differs: fields that nobody declared, and objects that were not there.
/// Only places that a step can have kept count: the annotation is a client's to write, and the rest of an object is
/// under other rules.
fn put_back(object: &mut Node, carried: Values, pairs: &[Pair]) -> Result<(), Problem> {
    let places = || pairs.iter().flat_map(|pair| [pair.from, pair.to]).flatten();
    for (path, value) in carried.into_iter().rev() {
        let path: Vec<&str> = path.split('.').collect();
        let is_kept = match value {
            Some(_) => places().any(|place| *place == path[..]),
            None => places().any(|place| place.starts_with(&path)),
        };
        match value {
            _ if !is_kept => {}
            Some(value) if has_parent(object, &path)? && object.at(&path)?.is_none() => {
                object.put(&path, Node::of(value))?;
            }
            None if object.at(&path)?.map_or(Ok(false), Node::is_empty)? => {
                object.take(&path)?;
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}
