//! The migrations that are there, held against `migrations.sum`: each line has a file and the hash of the line before
//! with the file's bytes, so that no file can be changed, left out or put between others unseen. What the statements
//! do is not known here.
//!
//! A migration has a file for each dialect of its time. A dialect that is added later is in all migrations from the
//! next one on and in none before it: a database of its engine begins with the schema, and never needs an older one.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::migration::{Migration, file_name, parse_compatible, parse_file_name};
use crate::diag::{Collector, messages};
use crate::dialect::{ALL, Dialect, REFERENCE};
use crate::source::{FileId, Sources, Span};

/// The file with the hashes, beside the migrations.
pub const SUM: &str = "migrations.sum";

/// A line of the sum.
struct Link<'s> {
    file: &'s str,
    number: u32,
    name: &'s str,
    dialect: &'static dyn Dialect,
    hash: &'s str,
    span: Span,
}

/// The migrations below the root, in order. Everything that breaks the chain is reported; a migration is left out only
/// where a file of it is missing.
pub fn read(sources: &Sources, found: &mut Collector) -> Vec<Migration> {
    let links = links(sources, found);
    check_hashes(sources, &links, found);
    for (file, id) in sources.migrations() {
        let is_listed = file == SUM || links.iter().any(|link| link.file == file);
        if !is_listed {
            found.push(messages::migration_not_in_the_sum(file, first_line(sources, *id)));
        }
    }
    check_order(&links, found);
    migrations(sources, &links)
}

/// The sum of the files that are there, in the order of their names, and the chain's value at the last one.
pub(super) fn sum(files: &BTreeMap<String, String>) -> (String, String) {
    let mut sum = String::new();
    let mut value = String::new();
    for (file, text) in files.iter().filter(|(file, _)| *file != SUM) {
        value = hash(&value, text);
        sum.push_str(&format!("{file} {value}\n"));
    }
    (sum, value)
}

/// The chain's value behind a file: SHA-256 of the value before it, as hexadecimal text, and of the file.
pub fn hash(previous: &str, text: &str) -> String {
    let digest = Sha256::new().chain_update(previous).chain_update(text).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn links<'s>(sources: &'s Sources, found: &mut Collector) -> Vec<Link<'s>> {
    let Some(&sum) = sources.migrations().get(SUM) else {
        return Vec::new();
    };
    let mut links = Vec::new();
    let mut start = 0;
    for line in sources.text(sum).split_inclusive('\n') {
        let text = line.trim_end();
        let span = Span::new(sum, start..start + text.len());
        start += line.len();
        match link(text, span) {
            Some(link) => links.push(link),
            None if text.is_empty() => {}
            None => found.push(messages::sum_line(text, span)),
        }
    }
    links
}

fn link(line: &str, span: Span) -> Option<Link<'_>> {
    let (file, hash) = line.split_once(' ')?;
    let (number, name, dialect) = parse_file_name(file)?;
    is_hash(hash).then_some(Link {
        file,
        number,
        name,
        dialect,
        hash,
        span,
    })
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Each file is held against the value before it as recorded, so that one edit is one message.
fn check_hashes(sources: &Sources, links: &[Link<'_>], found: &mut Collector) {
    let mut previous = "";
    for link in links {
        match sources.migrations().get(link.file) {
            None => found.push(messages::migration_missing(link.file, link.span)),
            Some(file) => {
                let is = hash(previous, sources.text(*file));
                if is != link.hash {
                    found.push(messages::migration_edited(link.file, link.hash, &is, link.span));
                }
            }
        }
        previous = link.hash;
    }
}

/// Number by number from 1, a file for each dialect, all under one name.
fn check_order(links: &[Link<'_>], found: &mut Collector) {
    let mut before = vec![REFERENCE];
    let migrations = links.chunk_by(|one, next| one.number == next.number);
    for (number, links) in (1..).zip(migrations) {
        let Some(dialects) = dialects(number, links, &before, found) else {
            return;
        };
        before = dialects;
    }
}

/// The dialects of the links, of which there is at least one, if these are the migration of that number. It has all
/// dialects of the migration before it.
fn dialects(
    number: u32,
    links: &[Link<'_>],
    before: &[&'static dyn Dialect],
    found: &mut Collector,
) -> Option<Vec<&'static dyn Dialect>> {
    let name = links[0].name;
    let mut dialects: Vec<&'static dyn Dialect> = Vec::new();
    for link in links {
        let follows = dialects.last().copied().and_then(place) < place(link.dialect);
        if link.number != number || link.name != name || !follows {
            let lacking = before.iter().copied().find(|dialect| !dialects.contains(dialect));
            let (number, next) = lacking.map_or((number + 1, before[0]), |lacking| (number, lacking));
            let wanted = format!("{number:04}_….{}.sql", next.word());
            found.push(messages::migration_out_of_order(link.file, &wanted, link.span));
            return None;
        }
        dialects.push(link.dialect);
    }
    let lacking = before.iter().copied().find(|dialect| !dialects.contains(dialect));
    let Some(lacking) = lacking else {
        return Some(dialects);
    };
    let file = file_name(number, name, lacking);
    let last = links[links.len() - 1].span;
    found.push(messages::migration_without_a_dialect(&file, last));
    None
}

/// In the order of files.
fn place(dialect: &'static dyn Dialect) -> Option<usize> {
    ALL.iter().position(|known| *known == dialect)
}

fn migrations(sources: &Sources, links: &[Link<'_>]) -> Vec<Migration> {
    let mut planned: BTreeMap<(u32, &str), Vec<&Link<'_>>> = BTreeMap::new();
    for link in links {
        planned.entry((link.number, link.name)).or_default().push(link);
    }
    let whole = planned.into_iter().filter_map(|((number, name), links)| {
        let files = links.iter().map(|link| sources.migrations().get(link.file).copied());
        let files: Vec<FileId> = files.collect::<Option<_>>()?;
        let compatible = files.iter().find_map(|file| parse_compatible(sources.text(*file)));
        Some(Migration {
            number,
            name: name.to_owned(),
            compatible: compatible.unwrap_or(number),
            dialects: links.iter().map(|link| link.dialect).collect(),
            checksum: links.last().map_or_else(String::new, |link| link.hash.to_owned()),
        })
    });
    whole.collect()
}

fn first_line(sources: &Sources, file: FileId) -> Span {
    let end = sources.text(file).find('\n').unwrap_or(0);
    Span::new(file, 0..end)
}
