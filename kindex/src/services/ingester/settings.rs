//! How the configuration has each kind ingested.

use kindex_commands::config::Config;
use kindex_model::kind::Kind;
use kindex_runtime::settings::{OrphanLimits, Settings};

/// How one kind is ingested. `adopt_finalizers` holds where the file does not say.
pub(super) fn of_kind(config: &Config, kind: &Kind, adopt_finalizers: bool) -> Settings {
    let ingester = &config.ingester;
    let workers = ingester.concurrent_reconciles_map.get(kind.name);
    let period = ingester.requeue_period_map.get(kind.name);
    let comparison = ingester.compare_period_map.get(kind.name);
    let orphans = ingester.max_orphans_map.get(kind.name);
    let percent = ingester.max_orphan_percent_map.get(kind.name);
    Settings {
        concurrent_reconciles: *workers.unwrap_or(&ingester.concurrent_reconciles) as usize,
        requeue_period: *period.unwrap_or(&ingester.requeue_period),
        compare_period: *comparison.unwrap_or(&ingester.compare_period),
        deletion_delay: config.metadata_storage.deletion_delay,
        finalizer_wait: ingester.finalizer_wait,
        adopt_finalizers: ingester.adopt_finalizers.unwrap_or(adopt_finalizers),
        version_cache: config.metadata_storage.enable_resource_version_cache,
        orphan_limits: OrphanLimits {
            rows_max: *orphans.unwrap_or(&ingester.max_orphans),
            percent_max: *percent.unwrap_or(&ingester.max_orphan_percent),
        },
        ..Settings::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kindex_generated::kinds::model::KIND as MODEL;
    use kindex_generated::kinds::pipeline_run::KIND as PIPELINE_RUN;

    use super::*;

    fn parse(text: &str) -> Config {
        Config::parse(text, &kindex_generated::registry()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_key_of_the_ingester_has_an_effect_on_each_kind() {
        let config = parse(
            "
metadataStorage:
  enableMetadataStorage: true
  deletionDelay: 10s
  enableResourceVersionCache: true
ingester:
  concurrentReconciles: 2
  concurrentReconcilesMap: {pipelinerun: 8}
  requeuePeriod: 45s
  requeuePeriodMap: {Model: 1m30s}
  comparePeriod: 12h
  comparePeriodMap: {PipelineRun: 0s}
  adoptFinalizers: true
  finalizerWait: 3m
",
        );
        let model = of_kind(&config, &MODEL, false);
        assert_eq!(model.concurrent_reconciles, 2);
        assert_eq!(model.requeue_period, Duration::from_secs(90));
        assert_eq!(model.compare_period, Duration::from_secs(12 * 3_600));
        assert_eq!(model.deletion_delay, Duration::from_secs(10));
        assert_eq!(model.finalizer_wait, Duration::from_secs(180));
        assert!(model.version_cache && model.adopt_finalizers);
        let run = of_kind(&config, &PIPELINE_RUN, false);
        assert_eq!(run.concurrent_reconciles, 8);
        assert_eq!(run.requeue_period, Duration::from_secs(45));
        assert_eq!(run.compare_period, Duration::ZERO);
    }

    #[test]
    fn the_orphan_limits_are_set_for_all_kinds_and_for_single_ones() {
        let text = "ingester:\n  maxOrphans: 7\n  maxOrphanPercent: 0\n  maxOrphansMap: {model: 9}\n  \
                    maxOrphanPercentMap: {PipelineRun: 100}\n";
        let limits = |kind| of_kind(&parse(text), kind, false).orphan_limits;
        let of = |rows_max, percent_max| OrphanLimits { rows_max, percent_max };
        assert_eq!((limits(&MODEL), limits(&PIPELINE_RUN)), (of(9, 0), of(7, 100)));
    }

    /// The configuration has defaults of its own, because commands are built without the ingester.
    #[test]
    fn what_is_not_written_is_as_the_ingester_has_it() {
        assert_eq!(of_kind(&parse(""), &MODEL, false), Settings::default());
        assert!(of_kind(&parse(""), &MODEL, true).adopt_finalizers);
    }

    #[test]
    fn a_file_that_says_no_adoption_is_stronger_than_the_command() {
        let config = parse("ingester: {adoptFinalizers: false}");
        assert!(!of_kind(&config, &MODEL, true).adopt_finalizers);
    }
}
