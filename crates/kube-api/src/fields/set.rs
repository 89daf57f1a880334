//! Sets of paths into an object, and their form `fieldsV1`. Refuses to know objects and who owns a set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::element::Element;

/// A set of paths: the members at this level, and sets of longer paths. That an element has a set below it does not
/// make it a member. No inner set is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    members: BTreeSet<Element>,
    children: BTreeMap<Element, FieldSet>,
}

impl FieldSet {
    /// The set of these paths of field names.
    pub(super) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let Some((last, before)) = path.split_last() else {
                continue;
            };
            let mut at = &mut set;
            for name in before {
                at = at.children.entry(Element::Field((*name).to_owned())).or_default();
            }
            at.members.insert(Element::Field((*last).to_owned()));
        }
        set
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    pub(super) fn insert(&mut self, element: Element) {
        self.members.insert(element);
    }

    pub(super) fn has(&self, element: &Element) -> bool {
        self.members.contains(element)
    }

    /// The set below `element`.
    pub(super) fn below(&self, element: &Element) -> Option<&Self> {
        self.children.get(element)
    }

    /// Puts `set` below `element`.
    pub(super) fn put_below(&mut self, element: &Element, set: Self) {
        if set.is_empty() {
            return;
        }
        match self.children.get_mut(element) {
            Some(known) => known.absorb(set),
            None => {
                self.children.insert(element.clone(), set);
            }
        }
    }

    /// The elements that have a set below them, with the sets.
    pub(super) fn inner(&self) -> impl Iterator<Item = (&Element, &Self)> {
        self.children.iter()
    }

    /// Takes up all paths of `other`.
    pub(super) fn absorb(&mut self, other: Self) {
        self.members.extend(other.members);
        for (element, set) in other.children {
            self.children.entry(element).or_default().absorb(set);
        }
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.absorb(other.clone());
        both
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut common = Self {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: BTreeMap::new(),
        };
        for (element, set) in &self.children {
            if let Some(other) = other.children.get(element) {
                common.put_below(element, set.intersection(other));
            }
        }
        common
    }

    /// The paths that are not in `other`. A path stays when only one above or below it is in `other`.
    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut rest = Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: BTreeMap::new(),
        };
        for (element, set) in &self.children {
            match other.children.get(element) {
                Some(other) => rest.put_below(element, set.difference(other)),
                None => rest.put_below(element, set.clone()),
            }
        }
        rest
    }

    /// Calls `visit` with each path: the members of a level, then what is below them.
    pub(super) fn each<'a>(&'a self, prefix: &mut Vec<&'a Element>, visit: &mut impl FnMut(&[&'a Element])) {
        for element in &self.members {
            prefix.push(element);
            visit(prefix);
            prefix.pop();
        }
        for (element, set) in &self.children {
            prefix.push(element);
            set.each(prefix, visit);
            prefix.pop();
        }
    }

    /// Reads `fieldsV1`; none when it is not in that form.
    pub(super) fn from_json(fields: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (key, inner) in fields.as_object()? {
            if key == "." {
                continue;
            }
            let element = Element::parse(key)?;
            let inner_fields = inner.as_object()?;
            if inner_fields.is_empty() || inner_fields.contains_key(".") {
                set.insert(element.clone());
            }
            set.put_below(&element, Self::from_json(inner)?);
        }
        Some(set)
    }

    /// Writes `fieldsV1`.
    pub(super) fn to_json(&self) -> Value {
        let mut fields: Map<String, Value> = self.members.iter().map(|element| (element.text(), json!({}))).collect();
        for (element, set) in &self.children {
            let mut inner = set.to_json();
            if self.members.contains(element) {
                inner["."] = json!({});
            }
            fields.insert(element.text(), inner);
        }
        fields.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(fields: Value) -> FieldSet {
        FieldSet::from_json(&fields).unwrap()
    }

    #[test]
    fn fields_v1_is_read_and_written_alike() {
        let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:list": {
            "k:{\"name\":\"x\",\"port\":1}": {".": {}, "f:v": {}}, "v:\"s\"": {}, "i:3": {}}}});
        assert_eq!(set(fields.clone()).to_json(), fields);
        assert_eq!(FieldSet::from_json(&json!({"x": {}})), None);
        assert_eq!(FieldSet::from_json(&json!({"f:a": 1})), None);
    }

    #[test]
    fn a_difference_keeps_children_of_removed_parents_and_parents_of_removed_children() {
        let all = set(json!({"f:a": {".": {}, "f:b": {}}}));
        assert_eq!(
            all.difference(&set(json!({"f:a": {}}))).to_json(),
            json!({"f:a": {"f:b": {}}})
        );
        assert_eq!(
            all.difference(&set(json!({"f:a": {"f:b": {}}}))).to_json(),
            json!({"f:a": {}})
        );
        assert!(all.difference(&all).is_empty());
    }

    #[test]
    fn union_and_intersection() {
        let (a, b) = (
            set(json!({"f:x": {}, "f:y": {"f:z": {}}})),
            set(json!({"f:y": {".": {}, "f:z": {}}})),
        );
        assert_eq!(a.union(&b).to_json(), json!({"f:x": {}, "f:y": {".": {}, "f:z": {}}}));
        assert_eq!(a.intersection(&b).to_json(), json!({"f:y": {"f:z": {}}}));
    }

    #[test]
    fn paths_are_written_as_messages_show_them() {
        let fields = set(json!({"f:l": {"k:{\"name\":\"x\",\"port\":1}": {"f:v": {}}, "v:\"s\"": {}, "i:3": {}}}));
        let mut shown = Vec::new();
        fields.each(&mut Vec::new(), &mut |path| {
            shown.push(path.iter().map(ToString::to_string).collect::<String>())
        });
        assert_eq!(shown, [r#".l[="s"]"#, ".l[3]", r#".l[name="x",port=1].v"#]);
    }
}
