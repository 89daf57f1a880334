//! `kindex verify`: every difference between the cluster and SQL, by kind and uid.

use std::time::Duration;

use kindex_maintenance::verify::{Checked, Finding, Options, Report, verify};
use kindex_model::kind::Registry;
use serde::Serialize;

use crate::cli::{Form, VerifyArgs};
use crate::error::{CommandError, CommandResult};
use crate::output::{below_table, document, table};
use crate::progress::Bar;
use crate::unserved::Unserved;
use crate::verify_references::{self, References};
use crate::{say, service_flag, sides};

/// What is printed: what was counted, and the first of what was found.
#[derive(Debug, Serialize)]
struct Printed<'a> {
    differing: u64,
    findings: &'a [Finding],
    kinds: &'a [Checked],
    /// Kinds that were not compared, for the cluster does not serve them.
    skipped: Vec<&'static str>,
    /// Of all kinds together; absent where only some were to be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<&'a References>,
}

/// Compares and prints; a difference is a failure.
pub async fn run(registry: &Registry, args: &VerifyArgs) -> CommandResult {
    let kinds = sides::cluster_kinds(registry, &args.kinds)?;
    let settle = Duration::try_from_secs_f64(args.settle)
        .map_err(|error| CommandError::usage(format_args!("--settle {}: {error}", args.settle)))?;
    let services = service_flag::addresses(registry, &args.services)?;
    let options = Options {
        namespace: args.namespace.clone(),
        settle,
        ..Options::default()
    };
    let sides = sides::open(registry, &args.sides).await?;
    let bar = Bar::new();
    let mut findings = Vec::new();
    let mut report = Report::default();
    let mut unserved = Unserved::default();
    for kind in &kinds {
        let mut found = |finding| {
            if findings.len() < args.limit {
                findings.push(finding);
            }
        };
        match verify(&sides, kind, &options, &bar, &mut found).await {
            Err(error) if error.is_unserved() => unserved.add(kind),
            checked => report.kinds.push(checked.map_err(|error| sides::stopped(&error))?),
        }
    }
    // References lead from everywhere to everywhere.
    let references = match (&args.namespace, &args.kinds[..]) {
        (None, []) => Some(verify_references::compare(registry, args, &services, &sides, settle, &bar).await?),
        _ => None,
    };
    sides.storage.close().await;
    unserved.report(&kinds)?;
    let skipped = unserved.names();
    let text = render(&report, &findings, &skipped, references.as_ref(), args.output)?;
    say::print(text)?;
    judge(&report, findings.len(), &skipped, references.as_ref())
}

fn render(
    report: &Report,
    findings: &[Finding],
    skipped: &[&'static str],
    references: Option<&References>,
    form: Form,
) -> CommandResult<String> {
    let printed = Printed {
        differing: report.differing(),
        findings,
        kinds: &report.kinds,
        skipped: skipped.to_vec(),
        references,
    };
    match form {
        Form::Json | Form::Yaml => document(&printed, form),
        Form::Table => {
            let references = references.map_or_else(String::new, |references| format!("\n{}", references.text()));
            Ok(as_tables(report, findings) + &references)
        }
    }
}

fn as_tables(report: &Report, findings: &[Finding]) -> String {
    let lines = findings.iter().flat_map(|finding| {
        finding.differences.iter().map(|difference| {
            let refused = finding.quarantined.as_ref();
            let refused = refused.map_or_else(String::new, |reason| format!(" (in quarantine: {reason})"));
            vec![
                finding.kind.to_owned(),
                finding.namespace.clone(),
                finding.name.clone(),
                finding.uid.clone(),
                difference.class.to_string(),
                difference.detail.clone() + &refused,
            ]
        })
    });
    let mut text = String::new();
    if !findings.is_empty() {
        text = table(&["kind", "namespace", "name", "uid", "difference", "detail"], lines);
        text.push('\n');
    }
    let counts = report.kinds.iter().map(|kind| {
        let numbers = [kind.objects, kind.rows, kind.differing, kind.unsettled];
        std::iter::once(kind.kind.to_owned())
            .chain(numbers.map(|number| number.to_string()))
            .collect()
    });
    text += &table(&["kind", "objects", "rows", "differing", "unsettled"], counts);
    let mut lines = Vec::new();
    for kind in &report.kinds {
        lines.extend(kind.held.lines(kind.kind));
        if kind.unconverted > 0 {
            let (kind, rows) = (kind.kind, kind.unconverted);
            lines.push(format!(
                "{kind}: {rows} rows are in another version, which is not a difference"
            ));
        }
    }
    text + &below_table(&lines)
}

/// What was not compared is not known to be equal.
fn judge(report: &Report, printed: usize, skipped: &[&str], references: Option<&References>) -> CommandResult {
    let differing = report.differing();
    if let (true, Some(count @ 1..)) = (report.is_clean(), references.map(References::differing)) {
        return Err(CommandError::failure(format_args!("{count} references differ"))
            .hint("docs/src/how-to/find-out-what-holds-an-object.md says what to do about each difference"));
    }
    match (report.is_clean(), skipped) {
        (true, []) => return Ok(()),
        (true, _) => {
            let kinds = skipped.join(", ");
            return Err(
                CommandError::failure(format_args!("not compared: {kinds}; all others are equal"))
                    .hint("name the others with --kind, or let the CRDs of these be installed"),
            );
        }
        (false, _) => {}
    }
    let more = match usize::try_from(differing) {
        Ok(differing) if differing > printed => format!(", {printed} of them printed"),
        _ => String::new(),
    };
    Err(
        CommandError::failure(format_args!("{differing} objects or rows differ{more}"))
            .hint("docs/src/how-to/heal.md says what to do about each difference"),
    )
}

#[cfg(test)]
mod tests {
    use kindex_maintenance::verify::HeldObject;

    use super::*;

    /// What follows on stderr would go on in the same line.
    #[test]
    fn what_is_printed_ends_with_its_line() {
        let mut checked = Checked {
            kind: "Model",
            unconverted: 2,
            ..Checked::default()
        };
        checked.held.add(HeldObject {
            namespace: "default".to_owned(),
            name: "one".to_owned(),
            uid: "u".to_owned(),
            finalizers: vec!["example.com/hold".to_owned()],
        });
        let report = Report { kinds: vec![checked] };
        let text = as_tables(&report, &[]);
        let held = "\n\nModel default/one is held by example.com/hold\n";
        let unconverted = "Model: 2 rows are in another version, which is not a difference\n";
        assert!(text.ends_with(&format!("{held}{unconverted}")), "{text}");
    }
}
