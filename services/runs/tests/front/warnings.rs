//! Every warning that an answer can carry, called forth over both transports.

use std::collections::BTreeSet;

use kindex_runs::domain::warning;

use crate::both::{Client, Pairs, Point, Transport, Warning};
use crate::server::Server;

/// Codes with the fields that they are about.
async fn called_forth(client: Client<'_>) -> Vec<Warning> {
    let run = format!("{:?}", client.transport);
    let mut all = Vec::new();
    all.extend(
        client
            .open(&format!("{run}-first"), "", &[])
            .await
            .expect("a run")
            .warnings,
    );
    all.extend(
        client
            .open(&run, "", &[("bad key", "x")])
            .await
            .expect("a run")
            .warnings,
    );
    let again = client.open(&run, "", &[("team", "x")]);
    all.extend(again.await.expect("the same run").warnings);
    let ahead = i64::MAX - 1;
    let log = async |id: &str, sequence, points: &[Point<'_>]| {
        client.log(&run, id, sequence, points).await.expect("stored").warnings
    };
    all.extend(log("1", Some(1), &[("a", 1, 1.0, None)]).await);
    all.extend(log("1", Some(1), &[("a", 1, 1.0, None)]).await);
    all.extend(log("late", Some(1), &[("a", 1, 1.0, None)]).await);
    all.extend(log("skew", None, &[("a", 1, 1.0, Some(ahead))]).await);
    all.extend(log("bad", None, &[("9", 1, 1.0, None), ("a", -1, 1.0, None)]).await);
    all.extend(
        log(
            "80",
            None,
            &[("b", 1, 1.0, None), ("c", 1, 1.0, None), ("d", 1, 1.0, None)],
        )
        .await,
    );
    all.extend(log("101", None, &[("e", 1, 1.0, None), ("f", 1, 1.0, None)]).await);
    let many: Vec<Point<'_>> = (0..10_001).map(|step| ("a", step, 1.0, None)).collect();
    all.extend(log("large", None, &many).await);
    let negative: Vec<Point<'_>> = (0..101).map(|_| ("a", -1, 1.0, None)).collect();
    all.extend(log("many", None, &negative).await);
    let params = async |params: Pairs<'_>| client.params(&run, params).await.expect("stored").warnings;
    all.extend(params(&[("9", "x"), ("lr", "1")]).await);
    all.extend(params(&[("lr", "2"), ("x", "1"), ("y", "1")]).await);
    let tags = client.tags(&run, &[("a", "1"), ("b", "1"), ("c", "1")], &[]);
    all.extend(tags.await.expect("stored").warnings);
    all
}

#[tokio::test]
async fn every_warning_code_is_produced_on_both_transports() {
    let mut of_transports = Vec::new();
    for transport in Transport::BOTH {
        let server = Server::with(|options| {
            options.store.metric_names_max = 5;
            options.store.params_max = 2;
            options.store.tags_max = 2;
            options.store.active_runs_max = 1;
        })
        .await;
        let warnings = called_forth(Client {
            server: &server,
            transport,
        })
        .await;
        assert!(warnings.iter().all(|(.., severity)| severity == "warning"));
        let codes: BTreeSet<&str> = warnings.iter().map(|(code, ..)| code.as_str()).collect();
        assert_eq!(codes, BTreeSet::from(warning::CODES), "{transport:?}");
        of_transports.push(warnings);
    }
    assert_eq!(
        of_transports[0], of_transports[1],
        "codes, fields and severities are the same"
    );
}

#[tokio::test]
async fn metric_names_warn_at_eighty_percent_and_new_ones_are_dropped_beyond_the_limit() {
    let server = Server::with(|options| options.store.metric_names_max = 10).await;
    for transport in Transport::BOTH {
        let client = Client {
            server: &server,
            transport,
        };
        let run = format!("{transport:?}");
        client.open(&run, "", &[]).await.expect("a run");
        let log = async |name: &str| {
            let logged = client
                .log(&run, name, None, &[(name, 1, 1.0, None)])
                .await
                .expect("answered");
            (logged.counts.0, logged.warnings.first().map(|(code, ..)| code.clone()))
        };
        for name in ["a", "b", "c", "d", "e", "f", "g"] {
            assert_eq!(log(name).await, (1, None), "{name}");
        }
        let approaching = Some(warning::CARDINALITY_LIMIT_APPROACHING.to_owned());
        for name in ["h", "i", "j"] {
            assert_eq!(log(name).await, (1, approaching.clone()), "{name}");
        }
        assert_eq!(
            log("k").await,
            (0, Some(warning::CARDINALITY_LIMIT_EXCEEDED.to_owned()))
        );
        let known = client
            .log(&run, "more", None, &[("a", 2, 1.0, None)])
            .await
            .expect("stored");
        assert_eq!(
            (known.counts, known.warnings.len()),
            ((1, 0), 0),
            "names that are known are accepted"
        );
    }
}
