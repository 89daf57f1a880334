//! What rows get, and what is wrong with those that get nothing.

use kindex_model::kind::{FieldMap, MapRule, Version as KindVersion};
use kindex_model::object::{ResourceVersion, Uid};
use kindex_model::row_version::RowVersion;
use kindex_store::Arrival;

use super::*;

const V1: KindVersion = KindVersion {
    name: "v1",
    served: true,
    stored: false,
    deprecated: None,
    map: &[FieldMap {
        here: Some(&["spec", "hours"]),
        own: Some(&["spec", "seconds"]),
        rule: MapRule::Function {
            to_own: |hours| match hours.as_i64() {
                Some(hours) => Ok((hours * 3_600).into()),
                None => Err("not a number of hours".to_owned()),
            },
            from_own: |seconds| Ok((seconds.as_i64().unwrap_or_default() / 3_600).into()),
        },
    }],
};

const KIND: Kind = Kind {
    name: "Trial",
    group: "g",
    version: "v2",
    versions: &[V1],
    plural: "trials",
    singular: "trial",
    table: "trial",
    ..Kind::EMPTY
};

const PLATFORM: Platform = Platform {
    group: "g",
    version: "v2",
    conversion_data: "g/ConversionData",
    ..Platform::EMPTY
};

const OLD: &str = concat!(
    r#"{"apiVersion":"g/v1","metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"7"},"#,
    r#""spec":{"hours":2}}"#
);

fn row(text: &str) -> OtherVersionRow {
    OtherVersionRow {
        arrival: Arrival(1),
        uid: Uid::from("u"),
        namespace: "n".to_owned(),
        name: "a".to_owned(),
        group_ver: "g/v1".to_owned(),
        res_version: RowVersion::Cluster(ResourceVersion(7)),
        hash: None,
        text: text.to_owned(),
    }
}

fn made(text: &str) -> Result<String, (String, String)> {
    let version = in_own_version(&PLATFORM, &KIND, &row(text));
    version
        .map(|version| version.object.text().to_owned())
        .map_err(|problem| (problem.path, problem.reason))
}

#[test]
fn a_row_gets_what_the_writer_would_write_for_the_object() {
    let new = OLD.replace("g/v1", "g/v2").replace(r#""hours":2"#, r#""seconds":7200"#);
    assert_eq!(made(OLD), Ok(new.clone()));
    let version = in_own_version(&PLATFORM, &KIND, &row(OLD)).expect("converted");
    let written = Version::project(&KIND, Object::parse_str(&new).expect("an object"));
    assert_eq!(version.hash, written.hash);
    let of_a_list = OLD.replace(r#""apiVersion":"g/v1","#, "");
    assert_eq!(made(&of_a_list), Ok(new), "the version of the row counts");
}

#[test]
fn what_does_not_convert_is_named_with_its_path() {
    let refused = |from: &str, to: &str| made(&OLD.replace(from, to)).expect_err(to);
    assert_eq!(
        refused(r#""hours":2"#, r#""hours":"two""#),
        ("spec.seconds".to_owned(), "not a number of hours".to_owned())
    );
    assert_eq!(refused("g/v1", "g/v0").0, "apiVersion");
    assert_eq!(refused(r#""uid":"u""#, r#""uid":"w""#).0, "metadata");
    assert_eq!(made("{\"broken}").expect_err("no JSON").0, "");
    let planned = plan(&PLATFORM, &KIND, vec![row("{}"), row(OLD), row("3")]);
    assert_eq!((planned.conversions.len(), planned.refusals.len()), (1, 2));
}
