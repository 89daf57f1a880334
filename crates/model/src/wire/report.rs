//! Where serde code leaves what it could not read exactly. serde can only accept or refuse a whole
//! object; a thread-local collector carries the third answer, "accepted, but". Outside of
//! [`collect`] a report goes nowhere, so that the same types serve as ordinary serde types.

use std::cell::RefCell;

use crate::kind::Problem;

thread_local! {
    static COLLECTOR: RefCell<Option<Collector>> = const { RefCell::new(None) };
}

/// What happened during one [`collect`].
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// Reports, in order.
    pub(super) problems: Vec<Problem>,
    /// Where the innermost error occurred, once one did.
    pub(super) failed_at: Option<String>,
    /// Whether what a message may hold, and JSON has no word for, is reported as well.
    is_strict: bool,
    path: Vec<Segment>,
}

/// One step into a document.
#[derive(Debug)]
pub(super) enum Segment {
    /// Member of an object.
    Member(String),
    /// Element of an array.
    Element(usize),
}

/// Reports that the value at the current place was accepted, but not read exactly.
pub fn report(message: impl Into<String>) {
    COLLECTOR.with_borrow_mut(|collector| {
        if let Some(collector) = collector {
            let path = render(&collector.path);
            let message = message.into();
            collector.problems.push(Problem { path, message });
        }
    });
}

/// Reports, where somebody wants to know it, a value that is kept and that JSON has no word for.
pub(super) fn report_nameless(message: impl FnOnce() -> String) {
    if COLLECTOR.with_borrow(|collector| collector.as_ref().is_some_and(|collector| collector.is_strict)) {
        report(message());
    }
}

/// Runs `read` and returns what was reported meanwhile on this thread.
pub(super) fn collect<T>(read: impl FnOnce() -> T) -> (T, Collector) {
    collect_into(Collector::default(), read)
}

/// The same, with what [`report_nameless`] reports.
pub(super) fn collect_strictly<T>(read: impl FnOnce() -> T) -> (T, Collector) {
    let strict = Collector {
        is_strict: true,
        ..Collector::default()
    };
    collect_into(strict, read)
}

fn collect_into<T>(collector: Collector, read: impl FnOnce() -> T) -> (T, Collector) {
    /// Puts the outer collector back, also when `read` panics.
    struct Restore(Option<Collector>);
    impl Drop for Restore {
        fn drop(&mut self) {
            COLLECTOR.set(self.0.take());
        }
    }
    let restore = Restore(COLLECTOR.replace(Some(collector)));
    let result = read();
    let collected = COLLECTOR.take().unwrap_or_default();
    drop(restore);
    (result, collected)
}

/// Runs `read` one step further into the document and notes where the first error occurred.
pub(super) fn within<T, E>(segment: Segment, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    COLLECTOR.with_borrow_mut(|collector| {
        if let Some(collector) = collector {
            collector.path.push(segment);
        }
    });
    let result = read();
    COLLECTOR.with_borrow_mut(|collector| {
        if let Some(collector) = collector {
            if result.is_err() && collector.failed_at.is_none() {
                collector.failed_at = Some(render(&collector.path));
            }
            collector.path.pop();
        }
    });
    result
}

/// Turns the error that has just occurred into a report at the place where it occurred.
pub(super) fn forgive(error: impl ToString) {
    COLLECTOR.with_borrow_mut(|collector| {
        if let Some(collector) = collector {
            let path = collector.failed_at.take().unwrap_or_default();
            let message = error.to_string();
            collector.problems.push(Problem { path, message });
        }
    });
}

fn render(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Member(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Segment::Element(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}
