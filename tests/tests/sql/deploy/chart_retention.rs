//! The CronJob of the chart that removes rows by the retention rules: off unless it is asked for, a command that the
//! program takes, and nothing within its reach but the database.

use clap::Parser as _;
use kindex::cli::{Cli, Command, Form, PurgeArgs};
use kindex_harness::helm;
use serde_json::Value;

use super::chart::{helm_is_there, one, refused, rendered, selects};

const ON: &str = "--set=retention.enabled=true";

fn pod(manifests: &[Value]) -> &Value {
    &one(manifests, "CronJob", "kindex-retention")["spec"]["jobTemplate"]["spec"]["template"]
}

/// What the container runs, as the program reads it.
fn command(values: &[&str]) -> PurgeArgs {
    let manifests = rendered(values);
    let args = pod(&manifests)["spec"]["containers"][0]["args"].as_array().cloned();
    let args = args.expect("arguments");
    let words = args.iter().map(|word| word.as_str().expect("text"));
    read(["kindex"].into_iter().chain(words))
}

/// A command line as the program reads it.
fn read<'a>(words: impl Iterator<Item = &'a str>) -> PurgeArgs {
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    match cli.command {
        Some(Command::Purge(args)) => args,
        other => panic!("{other:?}"),
    }
}

/// Rows that go are gone for good.
#[test]
fn nothing_is_removed_unless_somebody_asks_for_it() {
    if !helm_is_there() {
        return;
    }
    let of_retention = |values: &[&str]| {
        let of_it = |it: &Value| it["metadata"]["labels"]["app.kubernetes.io/component"] == "retention";
        let manifests = rendered(values).into_iter().filter(of_it);
        let kinds = manifests.map(|it| it["kind"].as_str().expect("a kind").to_owned());
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(of_retention(&[]), Vec::<String>::new());
    assert_eq!(of_retention(&[ON]), ["NetworkPolicy", "CronJob"]);
    for closed in [
        "--set=database.enabled=false",
        "--set=config.mysql=null",
        "--set=config.metadataStorage.enableMetadataStorage=false",
    ] {
        assert!(!of_retention(&[ON, closed]).contains(&"CronJob".to_owned()), "{closed}");
    }
}

#[test]
fn the_container_runs_a_purge_that_the_program_takes() {
    if !helm_is_there() {
        return;
    }
    let purge = command(&[ON]);
    let config = purge.store.config.expect("the file of the ConfigMap");
    assert_eq!(config.to_str(), Some("/etc/kindex/config/config.yaml"));
    assert_eq!((purge.kinds, purge.dry_run), (Vec::new(), false));
    assert_eq!(purge.output, Form::Json, "for logs");
    assert!(!purge.deletion);
    let purge = command(&[ON, "--set=deletion.enabled=true"]);
    assert!(!purge.deletion, "nobody has asked for it");
    let purge = command(&[
        ON,
        "--set=retention.kinds={pipelineruns,models}",
        "--set=retention.dryRun=true",
        "--set=retention.deletion=true",
        "--set=deletion.enabled=true",
    ]);
    assert_eq!((purge.kinds.len(), purge.dry_run, purge.deletion), (2, true, true));
}

/// Two at once would do the same work twice.
#[test]
fn a_run_never_begins_beside_the_one_before() {
    if !helm_is_there() {
        return;
    }
    let manifests = rendered(&[
        ON,
        "--set=retention.schedule=@weekly",
        "--set=retention.timeZone=Europe/Berlin",
    ]);
    let spec = &one(&manifests, "CronJob", "kindex-retention")["spec"];
    assert_eq!(spec["concurrencyPolicy"], "Forbid");
    assert_eq!(
        (&spec["schedule"], &spec["timeZone"]),
        (&"@weekly".into(), &"Europe/Berlin".into())
    );
}

#[test]
fn its_pods_reach_the_database_and_nothing_else() {
    if !helm_is_there() {
        return;
    }
    let manifests = rendered(&[
        ON,
        "--set=config.mysql.port=3307",
        "--set=networkPolicy.egress[0].ports[0].port=4318",
    ]);
    let pod = pod(&manifests);
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    assert!(pod["spec"]["serviceAccountName"].is_null(), "no account of the release");
    let policy = &one(&manifests, "NetworkPolicy", "kindex-retention")["spec"];
    assert!(selects(
        &policy["podSelector"]["matchLabels"],
        &pod["metadata"]["labels"]
    ));
    assert!(policy["ingress"].is_null(), "nobody calls it");
    let rules = policy["egress"].as_array().expect("rules").iter();
    let ports: Vec<&Value> = rules
        .flat_map(|rule| rule["ports"].as_array().expect("ports"))
        .map(|port| &port["port"])
        .collect();
    assert_eq!(ports, [53, 53, 3307]);
}

/// As if archived objects stayed without a word.
#[test]
fn deletions_that_nobody_would_carry_out_are_refused() {
    if !helm_is_there() {
        return;
    }
    let message = refused(&[ON, "--set=retention.deletion=true"]);
    assert!(
        message.contains("retention.deletion without deletion.enabled"),
        "{message}"
    );
    rendered(&["--set=retention.deletion=true"]);
}

/// The preview in the notes, as the program reads it.
fn preview(values: &[&str]) -> PurgeArgs {
    let chart = helm::chart();
    let chart = chart.to_str().expect("letters");
    let release = ["install", helm::RELEASE, chart, "--namespace", helm::RELEASE];
    let output = helm::helm(&[&release[..], &["--dry-run=client"], values].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let (_, notes) = text.split_once("\nNOTES:\n").expect("notes");
    let mut lines = notes.lines().map(str::trim);
    let line = lines.find(|line| line.starts_with("kindex purge ")).expect("a preview");
    read(line.split_whitespace())
}

/// As if the Job deleted archived objects that the preview did not name.
#[test]
fn the_notes_preview_what_the_container_does() {
    if !helm_is_there() {
        return;
    }
    let shown = preview(&[ON]);
    assert_eq!((shown.dry_run, shown.deletion), (true, false));
    let shown = preview(&[ON, "--set=retention.deletion=true,deletion.enabled=true"]);
    assert_eq!((shown.dry_run, shown.deletion), (true, true));
}

#[test]
fn a_schedule_that_is_none_is_refused() {
    if !helm_is_there() {
        return;
    }
    for wrong in ["daily", "0 3 * *", ""] {
        let message = refused(&[ON, "--set-string", &format!("retention.schedule={wrong}")]);
        assert!(message.contains("/retention/schedule"), "{wrong}: {message}");
    }
    let message = refused(&[ON, "--set=retention.kind=models"]);
    assert!(
        message.contains("additional properties 'kind' not allowed"),
        "{message}"
    );
}
