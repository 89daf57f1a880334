//! Errors in the input: collected by all stages, and reported together, sorted by position. All messages are worded in
//! `messages`.

mod render;

mod suggest;

pub(crate) mod messages;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::source::{Sources, Span};

/// Whether a text is colored, as for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without colors.
    Plain,
    /// With ANSI color codes.
    Colored,
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// Where it is; `None` only if there is no text to point at.
    span: Option<Span>,
    /// One line without a full stop.
    title: String,
    /// Stands beside the caret; may be empty.
    label: String,
    /// Other spans that a reader must see, each with its label.
    related: Vec<(Span, String)>,
    /// What to do about it, one line each.
    help: Vec<String>,
}

impl Diagnostic {
    /// Where it is.
    pub(crate) const fn span(&self) -> Option<Span> {
        self.span
    }

    /// What it is, on one line.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// What to do about it.
    pub(crate) fn help_lines(&self) -> &[String] {
        &self.help
    }

    /// The same with a code in front, and a link to its explanation.
    pub(crate) fn coded(mut self, code: &str, page: String) -> Self {
        self.title = format!("{code}: {}", self.title);
        self.help(page)
    }

    /// The whole text, as it is printed.
    pub(crate) fn render(&self, sources: &Sources, style: Style) -> String {
        render::render(self, sources, style)
    }

    fn at(span: Span, title: impl Into<String>) -> Self {
        Self {
            span: Some(span),
            title: title.into(),
            label: String::new(),
            related: Vec::new(),
            help: Vec::new(),
        }
    }

    fn nowhere(title: impl Into<String>) -> Self {
        Self {
            span: None,
            title: title.into(),
            label: String::new(),
            related: Vec::new(),
            help: Vec::new(),
        }
    }

    fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }
}

/// The errors found so far. Stages push and carry on, so that one run reports everything.
#[derive(Debug, Default)]
pub struct Collector {
    found: Vec<Diagnostic>,
}

impl Collector {
    /// Adds an error.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Whether no error was found.
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Sorts the errors, and adds the texts that they point into.
    pub fn into_diagnostics(mut self, sources: Sources) -> Diagnostics {
        self.found.sort();
        self.found.dedup();
        Diagnostics {
            found: self.found,
            sources: Box::new(sources),
            conclusion: "in the declaration; nothing was generated",
        }
    }
}

/// All errors of a run, at least one. `Display` prints them as rustc does, a blank line after each, and ends with
/// their number.
#[derive(Debug)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    sources: Box<Sources>,
    /// What the errors are in, and the consequence.
    conclusion: &'static str,
}

impl Diagnostics {
    /// How many errors there are.
    pub const fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there are none; never so for a value that `generate` returned.
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The first line of each error, in order: `crds.toml:12:8: unknown column type "strng"`.
    pub fn titles(&self) -> impl Iterator<Item = String> + '_ {
        self.found
            .iter()
            .map(|diagnostic| render::headline(diagnostic, &self.sources))
    }
}

impl Diagnostics {
    /// The files and directories below `root` that were read and exist, for build scripts to watch.
    pub fn inputs(&self, root: &Path) -> Vec<PathBuf> {
        self.sources.inputs(root)
    }

    /// The same errors, found in something other than a declaration.
    pub(crate) fn concluding(self, conclusion: &'static str) -> Self {
        Self { conclusion, ..self }
    }

    /// Each error with its help on one line, in order.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.found.iter().map(|diagnostic| {
            let mut line = render::headline(diagnostic, &self.sources);
            for help in &diagnostic.help {
                line.push_str("; ");
                line.push_str(help);
            }
            line
        })
    }
}

impl Diagnostics {
    /// All of them, as they are printed.
    pub fn text(&self, style: Style) -> String {
        let found = self.found.iter();
        let mut text: String = found
            .map(|diagnostic| format!("{}\n\n", diagnostic.render(&self.sources, style)))
            .collect();
        let count = match self.found.len() {
            1 => "1 error".to_owned(),
            count => format!("{count} errors"),
        };
        text.push_str(&format!("{count} {}", self.conclusion));
        text
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Style::Plain))
    }
}

impl std::error::Error for Diagnostics {}
