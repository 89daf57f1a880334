//! The input texts of a run, and spans in them. Reads files; does not interpret them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where the declaration lies, relative to the root.
pub const CRDS: &str = "crds.toml";

/// Where the messages lie, relative to the root; import paths start below it.
pub const PROTO_DIRECTORY: &str = "proto";

/// Where the record of the last run lies, relative to the root.
pub const LOCK: &str = "schema/crds.lock";

/// Where migrations and the record of their order lie, relative to the root.
pub const MIGRATIONS: &str = "schema/migrations";

/// One of the texts in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(usize);

/// A range of bytes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Which text.
    pub file: FileId,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The span of `range` in `file`.
    pub const fn new(file: FileId, range: Range<usize>) -> Self {
        Self {
            file,
            start: range.start,
            end: range.end,
        }
    }

    /// The range of bytes.
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A string of a declaration, value or key, with its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The value, without quotes and escapes.
    pub value: String,
    /// The whole literal, quotes included.
    pub span: Span,
    /// Where the value begins, if it is written letter by letter: no escapes, no line breaks trimmed.
    pub(crate) verbatim_start: Option<usize>,
}

impl Text {
    /// The span of a part of the value; the whole literal if it contains escapes.
    pub fn part(&self, range: Range<usize>) -> Span {
        match self.verbatim_start {
            Some(start) => Span::new(self.span.file, start + range.start..start + range.end),
            None => self.span,
        }
    }
}

/// A text and the path a person knows it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Relative to the root, with `/`.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// A file that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}", path = path.display())]
pub struct ReadError {
    /// Which file or directory.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// All input texts of a run.
///
/// Diagnostics are sorted by file in the order of addition: `crds.toml` first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    files: Vec<SourceFile>,
    protos: BTreeMap<String, FileId>,
    lock: Option<FileId>,
    migrations: BTreeMap<String, FileId>,
}

impl Sources {
    /// Sources that consist of the text of `crds.toml` alone.
    pub fn of_crds(text: impl Into<String>) -> Self {
        Self::of_declaration(CRDS, text)
    }

    /// The same for a declaration that a person knows by another path.
    pub fn of_declaration(path: impl Into<String>, text: impl Into<String>) -> Self {
        let crds = SourceFile {
            path: path.into(),
            text: text.into(),
        };
        Self {
            files: vec![crds],
            protos: BTreeMap::new(),
            lock: None,
            migrations: BTreeMap::new(),
        }
    }

    /// `crds.toml`.
    pub const fn crds(&self) -> FileId {
        FileId(0)
    }

    /// The record of the last run, if there is one.
    pub const fn lock(&self) -> Option<FileId> {
        self.lock
    }

    /// The messages: import path to file, in the order of import paths.
    pub const fn protos(&self) -> &BTreeMap<String, FileId> {
        &self.protos
    }

    /// The files beside the migrations: name to file, in the order of names.
    pub const fn migrations(&self) -> &BTreeMap<String, FileId> {
        &self.migrations
    }

    /// The text and path of a file.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0]
    }

    /// The text of a file.
    pub fn text(&self, id: FileId) -> &str {
        &self.file(id).text
    }

    /// Line and column of the start of a span, both counted from 1, the column in characters.
    pub fn line_and_column(&self, span: Span) -> (usize, usize) {
        let before = &self.text(span.file)[..span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        (line, column)
    }

    /// Adds a text that is neither messages nor the lock, such as a CRD manifest.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<String>) -> FileId {
        self.files.push(SourceFile {
            path: path.into(),
            text: text.into(),
        });
        FileId(self.files.len() - 1)
    }

    /// Adds a `.proto` file under its import path.
    pub fn add_proto(&mut self, import_path: &str, text: impl Into<String>) -> FileId {
        let id = self.add(format!("{PROTO_DIRECTORY}/{import_path}"), text);
        self.protos.insert(import_path.to_owned(), id);
        id
    }

    /// Adds a migration, or the record of their order, under its file name. One that is there is replaced.
    pub fn add_migration(&mut self, name: &str, text: impl Into<String>) -> FileId {
        let id = self.add(format!("{MIGRATIONS}/{name}"), text);
        self.migrations.insert(name.to_owned(), id);
        id
    }

    /// The files and directories below `root` that the texts came from and that exist, without the lock. `crds.toml`
    /// and the directories are named even if nothing could be read.
    pub fn inputs(&self, root: &Path) -> Vec<PathBuf> {
        let listed: BTreeSet<FileId> = self.protos.values().chain(self.migrations.values()).copied().collect();
        let others = (0..self.files.len()).map(FileId).filter(|id| !listed.contains(id));
        let others = others.filter(|id| Some(*id) != self.lock);
        let others = others.map(|id| self.file(id).path.as_str());
        let inputs = others.chain([PROTO_DIRECTORY, MIGRATIONS]);
        inputs
            .map(|path| root.join(path))
            .filter(|path| path.exists())
            .collect()
    }

    /// Adds the record of the last run.
    pub fn add_lock(&mut self, text: impl Into<String>) {
        self.lock = Some(self.add(LOCK, text));
    }
}

/// Reads `crds.toml`, the lock, the migrations and every `.proto` file below `proto/`.
///
/// # Errors
/// The first file that is there and cannot be read, or `crds.toml` if it is not there.
pub fn read(root: &Path) -> Result<Sources, ReadError> {
    read_around(root, Sources::of_crds(read_text(root, CRDS)?))
}

/// Reads the declaration in that file, with what lies beside it as beside `crds.toml`.
///
/// # Errors
/// Those of [`read`].
pub(crate) fn read_file(file: &Path) -> Result<Sources, ReadError> {
    let path = file.display().to_string();
    let text = read_text(Path::new(""), &path)?;
    read_around(directory_of(file), Sources::of_declaration(path, text))
}

/// The declaration in a directory, as a person finds it from the present one.
pub(crate) fn declaration_in(directory: &Path) -> PathBuf {
    if directory == Path::new(".") {
        return PathBuf::from(CRDS);
    }
    directory.join(CRDS)
}

/// The directory that a file is in, also where its path has no other part.
pub(crate) fn directory_of(file: &Path) -> &Path {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.unwrap_or_else(|| Path::new("."))
}

fn read_around(root: &Path, mut sources: Sources) -> Result<Sources, ReadError> {
    let mut import_paths = Vec::new();
    find(&root.join(PROTO_DIRECTORY), "", &[".proto"], &mut import_paths)?;
    import_paths.sort();
    for import_path in import_paths {
        let text = read_text(root, &format!("{PROTO_DIRECTORY}/{import_path}"))?;
        sources.add_proto(&import_path, text);
    }
    let mut migrations = Vec::new();
    find(&root.join(MIGRATIONS), "", &[".sql", ".sum"], &mut migrations)?;
    migrations.sort();
    for name in migrations {
        let text = read_text(root, &format!("{MIGRATIONS}/{name}"))?;
        sources.add_migration(&name, text);
    }
    match read_text(root, LOCK) {
        Ok(text) => sources.add_lock(text),
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(sources)
}

/// Reads one file below the root.
///
/// # Errors
/// The file is not there, not readable, or no UTF-8 text.
pub(crate) fn read_text(root: &Path, path: &str) -> Result<String, ReadError> {
    let full = root.join(path);
    fs::read_to_string(&full).map_err(|source| ReadError {
        path: PathBuf::from(path),
        source,
    })
}

/// The files below a directory, which need not be there, whose names have one of these ends.
fn find(directory: &Path, prefix: &str, ends: &[&str], found: &mut Vec<String>) -> Result<(), ReadError> {
    let read_error = |source| ReadError {
        path: directory.to_owned(),
        source,
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(read_error(source)),
    };
    for entry in entries {
        let entry = entry.map_err(read_error)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type().map_err(read_error)?.is_dir() {
            find(&entry.path(), &format!("{path}/"), ends, found)?;
        } else if ends.iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let text = "a = 1\nü = \"x\"\n";
        let sources = Sources::of_crds(text);
        let at = |start: usize| sources.line_and_column(Span::new(sources.crds(), start..text.len()));
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(text.find('x').expect("there")), (2, 6));
    }
}
