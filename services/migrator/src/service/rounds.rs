//! The trigger at work: a round in every period, one right after a definition changed or a migration ended, and a few
//! more until API servers show what the definition says.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{sleep, timeout};

use super::Migrator;
use super::health::Part;
use crate::causes::chain;
use crate::cluster::install::install;
use crate::cluster::reconcile::{Memory, Reconciled, reconcile};
use crate::trigger::Finding;
use crate::wire::GroupResource;

/// Before the first round that follows an unsettled one. Each further one waits twice as long.
const SOON: Duration = Duration::from_millis(500);
/// Changes of a definition that come together are reconciled together.
const TOGETHER: Duration = Duration::from_millis(100);
/// Longest pause after a round that failed, and while a migration waits for something that no watch tells of.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(30);
/// Before the resources of `migration.k8s.io` are asked for again.
const INSTALL_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Until the resources of `migration.k8s.io` are served.
pub(super) async fn install_definitions(migrator: &Migrator) {
    while let Err(error) = install(migrator.cluster.first(), &migrator.options.manifests).await {
        migrator.part_failures.begin(Part::Definitions, chain(&error));
        sleep(INSTALL_AGAIN_AFTER).await;
    }
    migrator.part_failures.end(Part::Definitions);
}

/// Reconciles for ever.
pub(super) async fn follow(migrator: &Migrator) {
    let settings = &migrator.options.settings;
    let mut memory = Memory::default();
    let mut findings = BTreeMap::new();
    let mut in_a_row = 0;
    loop {
        let pause = match reconcile(&migrator.cluster, &mut memory, settings, &migrator.options.wanted).await {
            Ok(reconciled) => {
                migrator
                    .metrics
                    .last_reconciled
                    .set(Timestamp::now().as_second() as f64);
                report(migrator, &mut findings, &reconciled);
                let failed = reconciled.iter().any(|one| one.applied.1.is_some());
                let waits = reconciled.iter().any(|one| one.waits);
                in_a_row = match reconciled.iter().any(|one| one.unsettled) || failed || waits {
                    true => in_a_row + 1,
                    false => 0,
                };
                let most = if waits { AGAIN_AFTER_MAX } else { settings.period };
                pause(in_a_row, most.min(settings.period))
            }
            Err(error) if error.is_not_found() => {
                // Somebody deleted the definitions of states or migrations.
                in_a_row = 1;
                install_definitions(migrator).await;
                SOON
            }
            Err(error) => {
                in_a_row += 1;
                migrator.part_failures.begin(Part::Trigger, chain(&error));
                pause(in_a_row, AGAIN_AFTER_MAX)
            }
        };
        if timeout(pause, migrator.changed.notified()).await.is_ok() {
            in_a_row = 0;
            sleep(TOGETHER).await;
        }
    }
}

/// Until the next round, after so many in a row that want another one soon.
fn pause(in_a_row: u32, most: Duration) -> Duration {
    match in_a_row.checked_sub(1) {
        None => most,
        Some(before) => SOON.saturating_mul(2_u32.saturating_pow(before)).min(most),
    }
}

/// Reports what is new since the round before.
fn report(migrator: &Migrator, findings: &mut BTreeMap<GroupResource, Finding>, reconciled: &[Reconciled]) {
    let mut trouble = None;
    for one in reconciled {
        let name = one.resource.to_string();
        if let Some(error) = &one.applied.1 {
            trouble = Some(format!("{name}: {}", chain(error)));
        }
        let before = match one.finding {
            Some(finding) => findings.insert(one.resource.clone(), finding),
            None => findings.remove(&one.resource),
        };
        if before == one.finding {
            continue;
        }
        match one.finding {
            Some(finding) => tracing::warn!(resource = name, %finding, "A storage version cannot be compared"),
            None => tracing::info!(resource = name, "A storage version can be compared again"),
        }
    }
    for finding in Finding::ALL {
        let resources = findings.values().filter(|one| **one == finding).count();
        migrator.metrics.found(finding, resources);
    }
    match trouble {
        Some(why) => migrator.part_failures.begin(Part::Trigger, why),
        None => migrator.part_failures.end(Part::Trigger),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_in_a_row_become_rare_and_never_rarer_than_the_period() {
        let period = Duration::from_secs(600);
        let pauses = [0, 1, 2, 3, 30, u32::MAX].map(|in_a_row| pause(in_a_row, period));
        assert_eq!(pauses, [period, SOON, SOON * 2, SOON * 4, period, period]);
    }
}
