//! An error as text: a headline that editors turn into a link, the line with a caret, and help. Wording comes from
//! `messages`.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Style};
use crate::source::{Sources, Span};

/// `crds.toml:12:8: unknown column type "strng"`.
pub(super) fn headline(diagnostic: &Diagnostic, sources: &Sources) -> String {
    match diagnostic.span {
        Some(span) => {
            let (line, column) = sources.line_and_column(span);
            let path = &sources.file(span.file).path;
            format!("{path}:{line}:{column}: {}", diagnostic.title)
        }
        None => diagnostic.title.clone(),
    }
}

/// The headline, the marked source and the help, without a final newline.
pub(super) fn render(diagnostic: &Diagnostic, sources: &Sources, style: Style) -> String {
    let (renderer, [bold, cyan, plain]) = match style {
        Style::Plain => (Renderer::plain(), [""; 3]),
        Style::Colored => (Renderer::styled(), ["\u{1b}[1m", "\u{1b}[1;36m", "\u{1b}[0m"]),
    };
    let mut text = format!("{bold}{}{plain}", headline(diagnostic, sources));
    if let Some(span) = diagnostic.span {
        text.push('\n');
        text.push_str(&snippet(diagnostic, span, sources, &renderer));
    }
    for help in &diagnostic.help {
        text.push_str(&format!("\n{cyan}help:{plain} {help}"));
    }
    text
}

fn snippet(diagnostic: &Diagnostic, span: Span, sources: &Sources, renderer: &Renderer) -> String {
    let primary = Snippet::source(sources.text(span.file))
        .annotation(AnnotationKind::Primary.span(span.range()).label(&diagnostic.label));
    let here = diagnostic
        .related
        .iter()
        .filter(|(other, _)| other.file == span.file)
        .map(|(other, label)| AnnotationKind::Context.span(other.range()).label(label));
    let mut group = Group::with_level(Level::ERROR).element(primary.annotations(here));
    for (other, label) in &diagnostic.related {
        if other.file != span.file {
            let file = sources.file(other.file);
            let elsewhere = Snippet::source(file.text.as_str())
                .path(file.path.as_str())
                .annotation(AnnotationKind::Context.span(other.range()).label(label));
            group = group.element(elsewhere);
        }
    }
    renderer.render(&[group])
}
