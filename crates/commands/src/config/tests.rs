//! Every key has an effect, every error a position, and the two conditions their meanings.

use kindex_generated::kinds::model::KIND as MODEL;
use kindex_generated::kinds::pipeline_run::KIND as PIPELINE_RUN;

use super::*;

static REGISTRY: Registry = Registry {
    kinds: &[&MODEL, &PIPELINE_RUN],
    ..Registry::EMPTY
};

/// The example of the reference's documentation.
const EXAMPLE: &str = "\
metadataStorage:
  enableMetadataStorage: true
  deletionDelay: 10s
  enableResourceVersionCache: true

mysql:
  host: mysql
  port: 3307
  user: root
  password: 0123
  database: michelangelo
  maxOpenConns: 24
  maxIdleConns: 6
  connMaxLifetime: 7m

ingester:
  concurrentReconciles: 2
  requeuePeriod: 45s
  adoptFinalizers: true
  finalizerWait: 3m
  concurrentReconcilesMap:
    pipelinerun: 8
  comparePeriod: 12h
  requeuePeriodMap:
    Model: 1m30s
  comparePeriodMap:
    PipelineRun: 0s
";

fn parse(text: &str) -> Config {
    Config::parse(text, &REGISTRY).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    match Config::parse(text, &REGISTRY) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

fn reason(text: &str) -> String {
    match parse(text).metadata_storage_choice() {
        MetadataStorageChoice::Off { reason } => reason,
        MetadataStorageChoice::On { address, .. } => panic!("on: {address}"),
    }
}

fn address(text: &str) -> String {
    match parse(text).metadata_storage_choice() {
        MetadataStorageChoice::Off { reason } => panic!("off: {reason}"),
        MetadataStorageChoice::On { address, .. } => address.to_string(),
    }
}

#[test]
fn every_key_of_the_ingester_is_read_for_all_kinds_and_for_single_ones() {
    let Config {
        metadata_storage,
        ingester,
        ..
    } = parse(EXAMPLE);
    assert_eq!(metadata_storage.deletion_delay, Duration::from_secs(10));
    assert!(metadata_storage.enable_resource_version_cache);
    assert_eq!(ingester.concurrent_reconciles, 2);
    assert_eq!(ingester.concurrent_reconciles_map, BTreeMap::from([("PipelineRun", 8)]));
    assert_eq!(ingester.requeue_period, Duration::from_secs(45));
    assert_eq!(
        ingester.requeue_period_map,
        BTreeMap::from([("Model", Duration::from_secs(90))])
    );
    assert_eq!(ingester.compare_period, Duration::from_secs(12 * 3_600));
    assert_eq!(
        ingester.compare_period_map,
        BTreeMap::from([("PipelineRun", Duration::ZERO)])
    );
    assert_eq!(ingester.finalizer_wait, Duration::from_secs(180));
    assert_eq!(ingester.adopt_finalizers, Some(true));
}

#[test]
fn credentials_stand_in_the_file_or_in_files_of_their_own() {
    let mysql = |keys: &str| format!("metadataStorage: {{enableMetadataStorage: true}}\nmysql: {{{keys}}}\n");
    let config = parse(&mysql("userFile: /secret/user, passwordFile: /secret/password"));
    assert_eq!(config.mysql.user_file, Some("/secret/user".into()));
    assert_eq!(config.mysql.password_file, Some("/secret/password".into()));
    assert!(config.mysql.is_enabled());
    for (keys, twice) in [
        ("user: a, userFile: /b", "user and userFile are both given"),
        (
            "passwordFile: /b, password: a",
            "password and passwordFile are both given",
        ),
    ] {
        let refused = refused(&mysql(keys));
        assert!(
            refused.contains(twice) && refused.contains("keep one of the two"),
            "{refused}"
        );
    }
}

#[test]
fn the_encryption_of_a_database_is_read_and_what_has_no_effect_is_an_error() {
    let mysql = |keys: &str| format!("mysql: {{host: h, {keys}}}\n");
    let tls = |keys: &str| parse(&mysql(keys)).mysql.fields.tls;
    assert_eq!(parse("mysql: {host: h}").mysql.fields.tls.mode, TlsMode::Preferred);
    assert_eq!(tls("tlsMode: disabled").mode, TlsMode::Disabled);
    let all = tls("tlsMode: verify-identity, tlsCaFile: /ca, tlsCertFile: /cert, tlsKeyFile: /key");
    assert_eq!(all.mode, TlsMode::VerifyIdentity);
    assert_eq!(
        [all.ca, all.cert, all.key],
        ["/ca", "/cert", "/key"].map(|path| Some(path.into()))
    );
    for (keys, message) in [
        (
            "tlsMode: verify",
            "tlsMode must be one of disabled, preferred, required, verify-ca",
        ),
        ("tlsCaFile: /ca", "tlsCaFile is given, and nothing is compared with it"),
        (
            "tlsMode: required, tlsCaFile: /ca",
            "set tlsMode to verify-ca or verify-identity",
        ),
        ("tlsCertFile: /cert", "tlsCertFile is given without its key"),
        ("tlsKeyFile: /key", "tlsKeyFile is given without its certificate"),
    ] {
        let refused = refused(&mysql(keys));
        assert!(refused.contains(message), "{refused}");
    }
}

#[test]
fn the_orphan_limits_are_read_for_all_kinds_and_for_single_ones() {
    let limits = |text: &str| {
        let ingester = parse(text).ingester;
        let (rows, percent) = (ingester.max_orphans_map, ingester.max_orphan_percent_map);
        (ingester.max_orphans, rows, ingester.max_orphan_percent, percent)
    };
    let none = BTreeMap::new;
    assert_eq!(limits("ingester:\n  maxOrphansMap: {}\n"), (100, none(), 50, none()));
    let text = "ingester:\n  maxOrphans: 7\n  maxOrphanPercent: 0\n  maxOrphansMap: {model: 9}\n  \
                maxOrphanPercentMap: {PipelineRun: 100}\n";
    let of = |kind: &'static str, limit: u32| BTreeMap::from([(kind, limit)]);
    assert_eq!(limits(text), (7, of("Model", 9), 0, of("PipelineRun", 100)));
    let wrong = refused("ingester:\n  maxOrphanPercent: 101\n  maxOrphansMap: {Model: many}\n");
    assert!(
        wrong.contains("maxOrphanPercent must be a number from 0 to 100"),
        "{wrong}"
    );
    assert!(wrong.contains("maxOrphansMap must be a number from 0"), "{wrong}");
}

#[test]
fn every_key_of_mysql_has_an_effect() {
    let config = parse(EXAMPLE);
    let MySqlConfig {
        enabled, fields, pool, ..
    } = &config.mysql;
    assert!(!enabled && config.mysql.is_enabled());
    assert_eq!(fields.password, "0123", "as written, not as a number");
    assert_eq!((pool.max_open, pool.max_idle), (24, 6));
    assert_eq!(pool.max_lifetime, Duration::from_secs(420));
    assert_eq!(address(EXAMPLE), "mysql://root@mysql:3307/michelangelo");
}

#[test]
fn what_is_not_written_has_the_defaults_of_the_reference() {
    let config = parse("");
    assert_eq!(config.ingester.concurrent_reconciles, 1);
    assert_eq!(config.ingester.requeue_period, Duration::from_secs(30));
    assert_eq!(config.ingester.adopt_finalizers, None);
    assert_eq!(config.metadata_storage.deletion_delay, Duration::ZERO);
    assert!(!config.metadata_storage.enable_resource_version_cache);
    let pool = &config.mysql.pool;
    assert_eq!((pool.max_open, pool.max_idle), (25, 5));
    assert_eq!(pool.max_lifetime, Duration::from_secs(300));
}

#[test]
fn gate_one_closed_keeps_the_ingester_off_whatever_the_database() {
    assert!(reason("").contains("enableMetadataStorage"));
    assert!(reason("mysql: {host: h}").contains("enableMetadataStorage"));
    let explicit = "metadataStorage: {enableMetadataStorage: false}\nmysql: {enabled: true}";
    assert!(reason(explicit).contains("enableMetadataStorage"));
}

#[test]
fn gate_two_closed_keeps_the_ingester_off_with_a_way_out() {
    let reason = reason("metadataStorage: {enableMetadataStorage: true}\nmysql: {port: 3306}");
    assert!(reason.contains("mysql.host"), "{reason}");
}

#[tokio::test]
async fn gate_two_opens_with_any_of_host_user_database_or_the_flag() {
    for (key, opened) in [
        ("host: h", "mysql://root@h:3306/michelangelo"),
        ("user: u", "mysql://u@localhost:3306/michelangelo"),
        ("database: d", "mysql://root@localhost:3306/d"),
        ("enabled: true", "mysql://root@localhost:3306/michelangelo"),
    ] {
        let text = format!("metadataStorage: {{enableMetadataStorage: true}}\nmysql: {{{key}}}");
        assert_eq!(address(&text), opened, "{key}");
        let MetadataStorageChoice::On { address, pool } = parse(&text).metadata_storage_choice() else {
            panic!("{key} is enough");
        };
        let opened = kindex_store::open(&address, REGISTRY, &pool);
        assert!(opened.is_ok(), "{key}: {:?}", opened.err());
    }
    let sqlite = "metadataStorage: {enableMetadataStorage: true}\nsqlite: {path: a/k.db}";
    assert_eq!(address(sqlite), "sqlite:a/k.db");
}

#[test]
fn an_unknown_key_is_refused_where_it_stands_with_what_was_meant() {
    let error = refused("ingester:\n  concurrentReconciles: 2\n  requeuPeriod: 30s\n");
    assert_eq!(
        error,
        "3:3: unknown key \"requeuPeriod\" in ingester\n  help: did you mean \"requeuePeriod\"?"
    );
    let error = refused("controllermgr: {}\n");
    assert!(error.starts_with("1:1: unknown key \"controllermgr\""), "{error}");
    assert!(error.contains("known keys: metadataStorage"), "{error}");
}

#[test]
fn an_unknown_kind_is_refused_with_what_was_meant() {
    let error = refused("ingester:\n  requeuePeriodMap:\n    Modell: 5s\n");
    assert_eq!(
        error,
        "3:5: unknown kind \"Modell\" in requeuePeriodMap\n  help: did you mean \"Model\"?"
    );
}

#[test]
fn all_errors_of_a_file_are_reported_in_order() {
    let error = refused(
        "ingester:\n  requeuePeriod: 30\n  concurrentReconciles: 0\n\
         metadataStorage:\n  enableMetadataStorage: perhaps\nmysql:\n  port: 70000\n  host: [h]\n",
    );
    let positions: Vec<&str> = error
        .lines()
        .filter(|line| !line.starts_with("  help"))
        .map(|line| &line[..line.match_indices(':').nth(1).expect("a position").0])
        .collect();
    assert_eq!(positions, ["2:18", "3:25", "5:26", "7:9", "8:9"], "{error}");
}

#[test]
fn two_databases_are_one_too_many() {
    let error = refused("mysql: {host: h}\nsqlite: {path: p}\n");
    assert!(error.contains("both configured"), "{error}");
}

#[test]
fn a_key_given_twice_is_refused() {
    assert!(refused("mysql:\n  host: a\n  host: b\n").contains("host"));
}

#[test]
fn a_file_that_is_no_yaml_is_refused_where_it_breaks() {
    let error = refused("mysql:\n  host: \"h\n");
    assert!(error.contains("not YAML"), "{error}");
}
