//! `schema/crds.lock`: what earlier runs decided and the next one must respect. Sorted, one fact a line, so that two
//! branches merge line by line. Field numbers and storage versions are never forgotten; what the database looks like
//! is in `structure`, for the migration planner to compare with.

pub mod dropped;

mod structure;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::artifact::{Artifacts, HEADER, RelativePath};
use crate::diag::{Collector, messages};
use crate::model::{DeclaredVersion, Kind};
use crate::source::{self, Sources, Span};

pub use structure::{LockedColumn, LockedKind, Seal, Structure};

/// Numbers that protobuf keeps for itself.
const PROTO_RESERVED: std::ops::RangeInclusive<u32> = 19_000..=19_999;

/// The facts of the lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    /// What the database looks like once every planned migration has run.
    pub structure: Structure,
    /// `tag <message> <field> <number> <type>`, of made messages, also of fields that are gone.
    tags: BTreeMap<(String, String), LockedTag>,
    /// `value <enum> <value> <number>`, of made enums, also of values that are gone.
    values: BTreeMap<(String, String), i32>,
    /// `version <Kind> <group>/<version> <hash>`, every one ever generated.
    pub versions: BTreeSet<(String, String, String)>,
    /// `dropped <Kind> <group>/<version>`, and after it what else was noted: versions that no cluster stores any more.
    dropped: BTreeMap<(String, String), String>,
}

/// A field number and the type it was given for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LockedTag {
    number: u32,
    ty: String,
    /// The line that says so; `None` for a number given in this run.
    span: Option<Span>,
}

/// A field that is there again, or still there, with another type: its number would change meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagConflict {
    /// The number.
    pub number: u32,
    /// The type that the number stands for.
    pub locked_type: String,
    /// The line of the lock.
    pub span: Option<Span>,
}

/// Reads the lock of the last run; an absent one is empty. Lines that say nothing are reported.
pub fn parse(sources: &Sources, found: &mut Collector) -> Lock {
    let mut lock = Lock::default();
    let Some(file) = sources.lock() else {
        return lock;
    };
    let mut start = 0;
    for line in sources.text(file).split_inclusive('\n') {
        let text = line.trim_end();
        let span = Span::new(file, start..start + text.len());
        start += line.len();
        let is_fact = !text.is_empty() && !text.starts_with('#');
        if is_fact && lock.read_line(text, span, found).is_none() {
            found.push(messages::lock_line(text, span));
        }
    }
    lock
}

impl Lock {
    fn read_line(&mut self, line: &str, span: Span, found: &mut Collector) -> Option<()> {
        let (fact, rest) = line.split_once(' ')?;
        let words: Vec<&str> = rest.splitn(4, ' ').collect();
        match (fact, words.as_slice()) {
            ("tag", [message, field, number, ty]) => {
                let tag = LockedTag {
                    number: number.parse().ok()?,
                    ty: (*ty).to_owned(),
                    span: Some(span),
                };
                self.refuse_reused_tag(message, field, &tag, span, found);
                self.tags.insert(pair(message, field), tag);
            }
            ("value", [name, value, number]) => {
                self.values.insert(pair(name, value), number.parse().ok()?);
            }
            ("version", [kind, api_version, hash]) => {
                let version = (*api_version).to_owned();
                self.versions.insert(((*kind).to_owned(), version, (*hash).to_owned()));
            }
            ("dropped", [kind, api_version, notes @ ..]) => {
                self.dropped.insert(pair(kind, api_version), notes.join(" "));
            }
            (fact, words) => self.structure.read(fact, words, span)?,
        }
        Some(())
    }

    /// Two branches that each add a field merge without a conflict in git and with one here.
    fn refuse_reused_tag(&self, message: &str, field: &str, tag: &LockedTag, span: Span, found: &mut Collector) {
        let holder = self
            .tags_of(message)
            .find(|(name, other)| other.number == tag.number && *name != field);
        if let Some((other, LockedTag { span: Some(first), .. })) = holder {
            found.push(messages::tag_reused(message, tag.number, other, field, span, *first));
        }
    }

    fn tags_of(&self, message: &str) -> impl Iterator<Item = (&str, &LockedTag)> {
        let message = message.to_owned();
        self.tags
            .range((message.clone(), String::new())..)
            .take_while(move |((name, _), _)| *name == message)
            .map(|((_, field), tag)| (field.as_str(), tag))
    }

    /// The number of a field of a made message: the one it has, or the next that was never used.
    ///
    /// # Errors
    /// The field has a number that stands for another type.
    pub fn assign_tag(&mut self, message: &str, field: &str, ty: &str) -> Result<u32, TagConflict> {
        if let Some(tag) = self.tags.get(&pair(message, field)) {
            if tag.ty == ty {
                return Ok(tag.number);
            }
            return Err(TagConflict {
                number: tag.number,
                locked_type: tag.ty.clone(),
                span: tag.span,
            });
        }
        let highest = self.tags_of(message).map(|(_, tag)| tag.number).max();
        let mut number = highest.unwrap_or(0) + 1;
        if PROTO_RESERVED.contains(&number) {
            number = PROTO_RESERVED.end() + 1;
        }
        let tag = LockedTag {
            number,
            ty: ty.to_owned(),
            span: None,
        };
        self.tags.insert(pair(message, field), tag);
        Ok(number)
    }

    /// Fields of a made message that are gone: their numbers and names stay reserved.
    pub fn retired_tags(&self, message: &str, live: &BTreeSet<&str>) -> Vec<(u32, String)> {
        let mut retired: Vec<_> = self
            .tags_of(message)
            .filter(|(field, _)| !live.contains(field))
            .map(|(field, tag)| (tag.number, field.to_owned()))
            .collect();
        retired.sort();
        retired
    }

    /// The number of a value of a made enum: the one it has, or the next that was never used, 0 first.
    pub fn assign_value(&mut self, enumeration: &str, value: &str) -> i32 {
        let key = pair(enumeration, value);
        if let Some(number) = self.values.get(&key) {
            return *number;
        }
        let next = self
            .values_of(enumeration)
            .map(|(_, number)| number + 1)
            .max()
            .unwrap_or(0);
        self.values.insert(key, next);
        next
    }

    /// Values of a made enum that are gone: their numbers and names stay reserved.
    pub fn retired_values(&self, enumeration: &str, live: &BTreeSet<&str>) -> Vec<(i32, String)> {
        let mut retired: Vec<_> = self
            .values_of(enumeration)
            .filter(|(value, _)| !live.contains(value))
            .map(|(value, number)| (number, value.to_owned()))
            .collect();
        retired.sort();
        retired
    }

    fn values_of(&self, enumeration: &str) -> impl Iterator<Item = (&str, i32)> {
        let enumeration = enumeration.to_owned();
        self.values
            .range((enumeration.clone(), String::new())..)
            .take_while(move |((name, _), _)| *name == enumeration)
            .map(|((_, value), number)| (value.as_str(), *number))
    }

    /// The versions of a kind in its group that earlier runs generated, that `kind` has no more, and that are not
    /// dropped.
    pub fn removed<'l>(&'l self, kind: &'l Kind) -> impl Iterator<Item = &'l str> {
        let of_kind = self.versions.iter().filter(|(name, _, _)| *name == kind.name.as_str());
        of_kind.filter_map(|(name, api_version, _)| {
            let (group, version) = api_version.split_once('/')?;
            let is_dropped = self.dropped.contains_key(&pair(name, api_version));
            let is_gone = group == kind.group.as_str() && !kind.has_version(version) && !is_dropped;
            is_gone.then_some(version)
        })
    }

    /// Notes the versions of these kinds. The structure stays as it is: a build plans nothing.
    pub fn record(&mut self, kinds: &[Kind]) {
        for kind in kinds {
            let own = (&kind.version, &kind.storage_version_hash);
            let others = kind
                .versions
                .iter()
                .map(|other| (&other.name, &other.storage_version_hash));
            for (version, hash) in std::iter::once(own).chain(others) {
                let (name, api_version) = pair(kind.name.as_str(), &format!("{}/{version}", kind.group));
                // What is declared again may be stored again.
                self.dropped.remove(&pair(&name, &api_version));
                self.versions.insert((name, api_version, hash.clone()));
            }
        }
    }

    /// Every version that a kind was ever declared in, by kind and version.
    pub fn declared(&self) -> impl Iterator<Item = DeclaredVersion> {
        self.versions.iter().filter_map(|(kind, api_version, hash)| {
            let (group, version) = api_version.split_once('/')?;
            Some(DeclaredVersion {
                kind: kind.clone(),
                group: group.to_owned(),
                version: version.to_owned(),
                hash: hash.clone(),
                dropped: self.dropped.contains_key(&pair(kind, api_version)),
            })
        })
    }

    /// The same facts about another structure.
    pub fn with_structure(&self, structure: Structure) -> Self {
        Self {
            structure,
            ..self.clone()
        }
    }

    /// The file.
    pub fn emit(&self) -> Artifacts {
        let mut lines = self.structure.lines();
        for ((message, field), tag) in &self.tags {
            lines.push(format!("tag {message} {field} {} {}", tag.number, tag.ty));
        }
        for ((enumeration, value), number) in &self.values {
            lines.push(format!("value {enumeration} {value} {number}"));
        }
        for (kind, api_version, hash) in &self.versions {
            lines.push(format!("version {kind} {api_version} {hash}"));
        }
        for ((kind, api_version), notes) in &self.dropped {
            lines.push(format!("dropped {kind} {api_version} {notes}").trim_end().to_owned());
        }
        lines.sort();
        let mut text = format!("# {HEADER}\n");
        text.push_str("# Commit it: field numbers and storage versions in here are never given twice.\n");
        for line in lines {
            writeln!(text, "{line}").expect("writing to a String cannot fail");
        }
        Artifacts::from([(RelativePath::new(source::LOCK), text)])
    }
}

fn pair(first: &str, second: &str) -> (String, String) {
    (first.to_owned(), second.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(lock: &Lock) -> String {
        lock.emit().into_values().next().expect("one file")
    }

    fn read(text: &str) -> (Lock, Collector) {
        let mut sources = Sources::of_crds("");
        sources.add_lock(text);
        let mut found = Collector::default();
        let lock = parse(&sources, &mut found);
        (lock, found)
    }

    #[test]
    fn it_reads_what_it_writes() {
        let mut lock = Lock::default();
        lock.assign_tag("a.ExperimentSpec", "owner", "string").expect("new");
        lock.assign_value("a.ExperimentStatus.Phase", "DRAFT");
        let facts = "key model model_owner owner,name\nhistory model\nmigration 2 0af\n\
                     column model size spec.size DECIMAL(20, 6)\nunsigned model size\nkind Model michelangelo.api/v2 models model\n";
        lock.structure = read(facts).0.structure;
        assert_eq!(lock.structure.lines().len(), 6);
        let (again, found) = read(&text_of(&lock));
        assert!(found.is_empty());
        assert_eq!(text_of(&again), text_of(&lock));
    }

    #[test]
    fn a_number_is_never_given_twice() {
        let mut lock = Lock::default();
        assert_eq!(lock.assign_tag("a.M", "one", "string"), Ok(1));
        assert_eq!(lock.assign_tag("a.M", "two", "string"), Ok(2));
        assert_eq!(lock.assign_tag("a.M", "three", "string"), Ok(3));
        let live = BTreeSet::from(["three"]);
        let retired = lock.retired_tags("a.M", &live);
        assert_eq!(retired, [(1, "one".to_owned()), (2, "two".to_owned())]);
    }

    #[test]
    fn numbers_of_protobuf_itself_are_passed_over() {
        let (mut lock, found) = read("tag a.M last 18999 string\n");
        assert!(found.is_empty());
        assert_eq!(lock.assign_tag("a.M", "next", "string"), Ok(20_000));
    }

    #[test]
    fn another_type_under_an_old_number_is_a_conflict() {
        let mut lock = Lock::default();
        lock.assign_tag("a.M", "size", "int32").expect("new");
        let conflict = lock.assign_tag("a.M", "size", "string").expect_err("refused");
        assert_eq!((conflict.number, conflict.locked_type.as_str()), (1, "int32"));
    }

    #[test]
    fn lines_of_another_program_are_reported() {
        for line in [
            "<<<<<<< HEAD",
            "column model size spec.size NUMBER",
            "history a b c d",
            "unsigned a",
            "migration 1 a\nmigration 1 b",
        ] {
            let (_, found) = read(&format!("{line}\ntag a.M one 1 string\n"));
            assert_eq!(found.into_diagnostics(Sources::of_crds("")).len(), 1, "{line}");
        }
    }
}
