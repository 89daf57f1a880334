//! The bar of long work, on stderr where that is a terminal.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kindex_store::progress::Progress;

const KNOWN: &str = "{prefix} {wide_bar:.cyan/dim} {human_pos}/{human_len}  {per_sec}  {eta} left  {msg}";
const UNKNOWN: &str = "{prefix} {spinner} {human_pos}  {per_sec}  {elapsed}  {msg}";

/// The same bar for all long commands.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar that is seen by people alone.
    pub(crate) fn new() -> Self {
        let target = if stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self(ProgressBar::with_draw_target(None, target))
    }

    /// Whether people see it.
    pub(crate) fn is_seen(&self) -> bool {
        !self.0.is_hidden()
    }
}

impl Progress for Bar {
    fn begin(&self, part: &str, total: Option<u64>) {
        let (template, bar) = (if total.is_some() { KNOWN } else { UNKNOWN }, &self.0);
        bar.reset();
        match total {
            Some(total) => bar.set_length(total),
            None => bar.unset_length(),
        }
        bar.set_style(ProgressStyle::with_template(template).expect("the templates are ours"));
        bar.set_prefix(part.to_owned());
        bar.set_message("");
        bar.enable_steady_tick(Duration::from_millis(100));
    }

    fn advance(&self, count: u64) {
        self.0.inc(count);
    }

    fn note(&self, note: &str) {
        self.0.set_message(note.lines().next().unwrap_or_default().to_owned());
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}
