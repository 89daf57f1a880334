//! Sets of paths into an object, and their form `fieldsV1`. Knows nothing of objects and of who owns a set.

use serde_json::{Map, Value, json};

use super::element::Element;

/// A set of paths: sorted, each element once, and as large as it is, since large objects have a path for a few bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSet(Box<[Branch]>);

/// The paths of a set that begin with one element. That it has paths below it does not make it a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Branch {
    pub(super) element: Element,
    pub(super) is_member: bool,
    pub(super) below: FieldSet,
}

impl Branch {
    pub(super) fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }

    /// The length of its key in `fieldsV1`, with a colon and a comma.
    pub(super) fn own_bytes(&self) -> usize {
        self.element.text_bytes() + 2
    }
}

/// Branches in any order, of which several may begin with one element.
impl FromIterator<Branch> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Branch>>(branches: I) -> Self {
        let mut branches: Vec<Branch> = branches.into_iter().collect();
        branches.retain(|branch| !branch.is_empty());
        if !branches.is_sorted_by(|a, b| a.element < b.element) {
            branches.sort_by(|a, b| a.element.cmp(&b.element));
            branches = each_once(branches);
        }
        Self(branches.into_boxed_slice())
    }
}

/// Sorted branches, with those of one element put together.
fn each_once(branches: Vec<Branch>) -> Vec<Branch> {
    let mut once: Vec<Branch> = Vec::with_capacity(branches.len());
    let mut branches = branches.into_iter().peekable();
    while let Some(mut first) = branches.next() {
        let mut below = Vec::new();
        while let Some(again) = branches.next_if(|again| again.element == first.element) {
            first.is_member |= again.is_member;
            below.extend(again.below.into_branches());
        }
        // All at once: one after the other each would be gone through again for each.
        if !below.is_empty() {
            let first_below = std::mem::take(&mut first.below);
            first.below = first_below.into_branches().chain(below).collect();
        }
        once.push(first);
    }
    once
}

impl FieldSet {
    /// The set of these paths of field names.
    pub(super) fn of_fields(paths: &[&[&str]]) -> Self {
        let path = |path: &&[&str]| {
            path.iter().rev().fold(Self::default(), |below, name| {
                Self::from_iter([Branch {
                    element: Element::field(name),
                    is_member: below.is_empty(),
                    below,
                }])
            })
        };
        Self::union_of(paths.iter().map(path))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, element: &Element) -> Option<&Branch> {
        let at = self.0.binary_search_by(|branch| branch.element.cmp(element)).ok()?;
        self.0.get(at)
    }

    pub(super) fn has(&self, element: &Element) -> bool {
        self.find(element).is_some_and(|branch| branch.is_member)
    }

    /// The set below `element`.
    pub(super) fn below(&self, element: &Element) -> Option<&Self> {
        let branch = self.find(element)?;
        (!branch.below.is_empty()).then_some(&branch.below)
    }

    /// By their first elements, in order.
    pub(super) fn into_branches(self) -> impl Iterator<Item = Branch> {
        self.0.into_iter()
    }

    pub(super) fn union(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            (false, false) => Self::union_of([self, other]),
        }
    }

    /// All paths of all sets.
    pub(super) fn union_of(sets: impl IntoIterator<Item = Self>) -> Self {
        sets.into_iter().flat_map(Self::into_branches).collect()
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let common = self.0.iter().filter_map(|branch| {
            let other = other.find(&branch.element)?;
            Some(Branch {
                element: branch.element.clone(),
                is_member: branch.is_member && other.is_member,
                below: branch.below.intersection(&other.below),
            })
        });
        common.collect()
    }

    /// The paths that are not in `other`. A path stays when only one above or below it is in `other`.
    pub(super) fn difference(self, other: &Self) -> Self {
        if other.is_empty() {
            return self;
        }
        let rest = self.into_branches().map(|branch| match other.find(&branch.element) {
            None => branch,
            Some(other) => Branch {
                is_member: branch.is_member && !other.is_member,
                below: branch.below.difference(&other.below),
                element: branch.element,
            },
        });
        rest.collect()
    }

    /// Calls `visit` with each path: the members of a level, then what is below them.
    pub(super) fn each<'a>(&'a self, prefix: &mut Vec<&'a Element>, visit: &mut impl FnMut(&[&'a Element])) {
        for branch in self.0.iter().filter(|branch| branch.is_member) {
            prefix.push(&branch.element);
            visit(prefix);
            prefix.pop();
        }
        for branch in &self.0 {
            prefix.push(&branch.element);
            branch.below.each(prefix, visit);
            prefix.pop();
        }
    }

    /// Reads `fieldsV1`; none when it is not in that form.
    pub(super) fn from_json(fields: &Value) -> Option<Self> {
        let fields = fields.as_object()?;
        let mut branches = Vec::with_capacity(fields.len());
        for (key, inner) in fields.iter().filter(|(key, _)| *key != ".") {
            let inner_fields = inner.as_object()?;
            branches.push(Branch {
                element: Element::parse(key)?,
                is_member: inner_fields.is_empty() || inner_fields.contains_key("."),
                below: Self::from_json(inner)?,
            });
        }
        Some(branches.into_iter().collect())
    }

    /// Writes `fieldsV1`.
    pub(super) fn into_json(self) -> Value {
        let fields = self.into_branches().map(|branch| {
            let is_both = branch.is_member && !branch.below.is_empty();
            let mut inner = branch.below.into_json();
            if is_both {
                inner["."] = json!({});
            }
            (branch.element.text(), inner)
        });
        fields.collect::<Map<_, _>>().into()
    }

    /// The length of `fieldsV1`, which is not made.
    pub(super) fn text_bytes(&self) -> usize {
        let each = self.0.iter().map(|branch| {
            // The mark of a member that has paths below it.
            let mark = if branch.is_member && !branch.below.is_empty() {
                7
            } else {
                0
            };
            branch.own_bytes() + mark + branch.below.text_bytes()
        });
        // Braces; the last entry has no comma.
        2 + each.sum::<usize>().saturating_sub(1)
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
        assert_eq!(set(fields.clone()).text_bytes(), fields.to_string().len());
        assert_eq!(set(fields.clone()).into_json(), fields);
        assert_eq!(FieldSet::from_json(&json!({"x": {}})), None);
        assert_eq!(FieldSet::from_json(&json!({"f:a": 1})), None);
    }

    #[test]
    fn a_difference_keeps_children_of_removed_parents_and_parents_of_removed_children() {
        let all = set(json!({"f:a": {".": {}, "f:b": {}}}));
        assert_eq!(
            all.clone().difference(&set(json!({"f:a": {}}))).into_json(),
            json!({"f:a": {"f:b": {}}})
        );
        assert_eq!(
            all.clone().difference(&set(json!({"f:a": {"f:b": {}}}))).into_json(),
            json!({"f:a": {}})
        );
        assert!(all.clone().difference(&all).is_empty());
    }

    #[test]
    fn union_and_intersection() {
        let (a, b) = (
            set(json!({"f:x": {}, "f:y": {"f:z": {}}})),
            set(json!({"f:y": {".": {}, "f:z": {}}})),
        );
        assert_eq!(a.intersection(&b).into_json(), json!({"f:y": {"f:z": {}}}));
        assert_eq!(a.union(b).into_json(), json!({"f:x": {}, "f:y": {".": {}, "f:z": {}}}));
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
