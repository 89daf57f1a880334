//! The migrations that are there, held against `migrations.sum`: each line has a file and the hash of the line before
//! with the file's bytes, so that no file can be changed, left out or put between others unseen. What the statements
//! do is not known here.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::migration::{Migration, parse_compatible, parse_file_name};
use crate::diag::{Collector, messages};
use crate::dialect;
use crate::source::{FileId, Sources, Span};

/// The file with the hashes, beside the migrations.
pub const SUM: &str = "migrations.sum";

/// A line of the sum.
struct Link<'s> {
    file: &'s str,
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
        match text.split_once(' ') {
            _ if text.is_empty() => {}
            Some((file, hash)) if parse_file_name(file).is_some() && is_hash(hash) => {
                links.push(Link { file, hash, span });
            }
            _ => found.push(messages::sum_line(text, span)),
        }
    }
    links
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
    let mut expected = (1, 0);
    let mut name = "";
    for link in links {
        let (number, called, spelt) = parse_file_name(link.file).expect("checked when the line was read");
        let (wanted, at) = expected;
        let is_next = number == wanted && spelt == dialect::ALL[at] && (at == 0 || called == name);
        if !is_next {
            let wanted = format!("{wanted:04}_….{}.sql", dialect::ALL[at].word());
            found.push(messages::migration_out_of_order(link.file, &wanted, link.span));
            return;
        }
        name = called;
        expected = if at + 1 == dialect::ALL.len() {
            (wanted + 1, 0)
        } else {
            (wanted, at + 1)
        };
    }
}

fn migrations(sources: &Sources, links: &[Link<'_>]) -> Vec<Migration> {
    let mut files: BTreeMap<(u32, &str), Vec<(FileId, &str)>> = BTreeMap::new();
    for link in links {
        let (number, name, _) = parse_file_name(link.file).expect("checked when the line was read");
        if let Some(file) = sources.migrations().get(link.file) {
            files.entry((number, name)).or_default().push((*file, link.hash));
        }
    }
    let whole = files.into_iter().filter(|(_, files)| files.len() == dialect::ALL.len());
    let migrations = whole.map(|((number, name), files)| {
        let compatible = files.iter().find_map(|(file, _)| parse_compatible(sources.text(*file)));
        Migration {
            number,
            name: name.to_owned(),
            compatible: compatible.unwrap_or(number),
            checksum: files.last().map_or_else(String::new, |(_, hash)| (*hash).to_owned()),
        }
    });
    migrations.collect()
}

fn first_line(sources: &Sources, file: FileId) -> Span {
    let end = sources.text(file).find('\n').unwrap_or(0);
    Span::new(file, 0..end)
}
