//! A mistake as text: a headline that editors turn into a link, the line with a caret, and help. Wording comes from
//! `messages`.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::Diagnostic;
use crate::source::{Place, Sources};

/// `crds.toml:12:8: unknown column type "strng"`.
pub(super) fn headline(diagnostic: &Diagnostic, sources: &Sources) -> String {
    match diagnostic.place {
        Some(place) => {
            let (line, column) = line_and_column(sources.text(place.file), place.start);
            let path = &sources.file(place.file).path;
            format!("{path}:{line}:{column}: {}", diagnostic.title)
        }
        None => diagnostic.title.clone(),
    }
}

/// The headline, the marked source and the help, without a final newline.
pub(super) fn render(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let mut text = headline(diagnostic, sources);
    if let Some(place) = diagnostic.place {
        text.push('\n');
        text.push_str(&snippet(diagnostic, place, sources));
    }
    for help in &diagnostic.help {
        text.push_str("\nhelp: ");
        text.push_str(help);
    }
    text
}

fn snippet(diagnostic: &Diagnostic, place: Place, sources: &Sources) -> String {
    let primary = Snippet::source(sources.text(place.file))
        .annotation(AnnotationKind::Primary.span(place.span()).label(&diagnostic.label));
    let here = diagnostic
        .related
        .iter()
        .filter(|(other, _)| other.file == place.file)
        .map(|(other, label)| AnnotationKind::Context.span(other.span()).label(label));
    let mut group = Group::with_level(Level::ERROR).element(primary.annotations(here));
    for (other, label) in &diagnostic.related {
        if other.file != place.file {
            let file = sources.file(other.file);
            let elsewhere = Snippet::source(file.text.as_str())
                .path(file.path.as_str())
                .annotation(AnnotationKind::Context.span(other.span()).label(label));
            group = group.element(elsewhere);
        }
    }
    Renderer::plain().render(&[group])
}

/// Both counted from 1, the column in characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::line_and_column;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let text = "a = 1\nü = \"x\"\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, text.find('x').expect("there")), (2, 6));
    }
}
