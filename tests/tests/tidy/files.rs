//! The files that people write: everything in the checkout except build output and
//! what the generator emits. Knows nothing of the rules.

use std::fs;
use std::path::{Path, PathBuf};

/// One hand-written text file.
pub(super) struct File {
    /// From the root of the checkout, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    /// `path:line: message`, lines counted from zero as iterators do.
    pub(super) fn finding(&self, line: usize, message: &str) -> String {
        format!("{}:{}: {message}", self.path, line + 1)
    }
}

/// The root of the checkout.
pub(super) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the package has a parent directory").to_owned()
}

/// Every hand-written file whose name ends with one of the endings, sorted by path.
pub(super) fn hand_written(endings: &[&str]) -> Vec<File> {
    let files = all(endings);
    files.into_iter().filter(|file| !is_emitted(file)).collect()
}

/// Every file whose name ends with one of the endings, emitted ones too.
pub(super) fn all(endings: &[&str]) -> Vec<File> {
    let root = root();
    let mut files = Vec::new();
    walk(&root, &root, endings, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(root: &Path, directory: &Path, endings: &[&str], files: &mut Vec<File>) {
    let entries = fs::read_dir(directory).expect("a directory of the checkout is readable");
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !is_build_output(&name) {
                walk(root, &path, endings, files);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            let relative = path.strip_prefix(root).expect("found below the root");
            // A colleague's editor may remove a file between the listing and the reading.
            if let Ok(text) = fs::read_to_string(&path) {
                let path = relative.to_string_lossy().replace('\\', "/");
                files.push(File { path, text });
            }
        }
    }
}

pub(super) fn is_build_output(name: &str) -> bool {
    matches!(name, "target" | ".git" | ".kindex" | "node_modules" | "book")
}

pub(super) fn is_emitted(file: &File) -> bool {
    file.path.starts_with("generated/src/")
        || file
            .text
            .lines()
            .take(5)
            .any(|line| line.contains(concat!("@gene", "rated")))
}
