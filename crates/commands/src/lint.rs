//! `kindex lint`: tells what `kindex-codegen` finds in migrations and in crds.toml, for people, for programs and for
//! GitHub. What is a finding is decided there.

use kindex_codegen::diag::Style;
use kindex_codegen::lint::{Finding, Level, Report};
use serde::Serialize;

use crate::cli::{Form, LintArgs, LintForm};
use crate::error::{CommandError, CommandResult};
use crate::{color, output, say};

/// Tells every finding; any is a failure.
pub fn run(args: &LintArgs) -> CommandResult {
    if !args.root.join("crds.toml").is_file() {
        return Err(
            CommandError::usage(format_args!("no crds.toml in {}", args.root.display()))
                .hint("run this where crds.toml is, or name the directory with --root DIR"),
        );
    }
    let report = kindex_codegen::lint(&args.root).map_err(|errors| {
        say::note(errors.text(color::of_stderr()));
        CommandError::failure("nothing was checked: fix the errors first")
    })?;
    if let Some(reminder) = &report.reminder {
        say::note(format_args!("warning: {reminder}"));
    }
    say::print(reported(&report, args.output)?)?;
    match report.findings.len() {
        0 => Ok(()),
        1 => Err(CommandError::failure("1 finding")),
        count => Err(CommandError::failure(format_args!("{count} findings"))),
    }
}

fn reported(report: &Report, form: LintForm) -> CommandResult<String> {
    match form {
        LintForm::Text => Ok(text(report, color::of_stdout())),
        LintForm::Json => output::document(&Document::of(report), Form::Json),
        LintForm::Github => Ok(report.findings.iter().map(annotation).collect()),
    }
}

fn text(report: &Report, style: Style) -> String {
    let findings = report.findings.iter().map(|finding| match style {
        Style::Plain => &finding.text,
        Style::Colored => &finding.colored,
    });
    let mut text: String = findings.map(|finding| format!("{finding}\n\n")).collect();
    if report.findings.is_empty() {
        text.push_str(
            match report.allowed {
                0 => "no findings\n".to_owned(),
                allowed => format!("no findings; {allowed} allowed\n"),
            }
            .as_str(),
        );
    }
    text
}

#[derive(Serialize)]
struct Document<'a> {
    findings: Vec<DocumentFinding<'a>>,
    allowed: usize,
}

#[derive(Serialize)]
struct DocumentFinding<'a> {
    code: &'static str,
    level: Level,
    file: &'a str,
    line: usize,
    column: usize,
    message: &'a str,
    help: &'a [String],
    page: String,
}

impl<'a> Document<'a> {
    fn of(report: &'a Report) -> Self {
        let findings = report.findings.iter().map(|finding| DocumentFinding {
            code: finding.code.as_str(),
            level: finding.code.level(),
            file: &finding.file,
            line: finding.line,
            column: finding.column,
            message: &finding.message,
            help: &finding.help,
            page: finding.code.page(),
        });
        Self {
            findings: findings.collect(),
            allowed: report.allowed,
        }
    }
}

/// A line that GitHub shows beside the line of the file.
/// <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>
fn annotation(finding: &Finding) -> String {
    let code = finding.code;
    let message = [finding.message.as_str()]
        .into_iter()
        .chain(finding.help.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join("\n");
    format!(
        "::{} file={},line={},col={},title={code}::{}\n",
        code.level().word(),
        property(&finding.file),
        finding.line,
        finding.column,
        escaped(&message)
    )
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use kindex_codegen::lint::Code;

    use super::*;

    fn finding() -> Finding {
        Finding {
            code: Code::K103,
            file: "schema/a,b.sql".to_owned(),
            line: 7,
            column: 1,
            message: "100% gone".to_owned(),
            help: vec!["think".to_owned()],
            text: String::new(),
            colored: String::new(),
        }
    }

    #[test]
    fn an_annotation_is_one_line_whatever_is_found() {
        assert_eq!(
            annotation(&finding()),
            "::error file=schema/a%2Cb.sql,line=7,col=1,title=K103::100%25 gone%0Athink\n"
        );
    }

    #[test]
    fn a_program_reads_the_level_as_a_word() {
        let report = Report {
            findings: vec![finding()],
            allowed: 0,
            reminder: None,
        };
        let document = serde_json::to_value(Document::of(&report)).expect("JSON");
        assert_eq!(document["findings"][0]["level"], "error");
    }
}
