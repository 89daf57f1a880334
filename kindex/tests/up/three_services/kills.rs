//! Kills amid a running deletion, at moments that come from a seed.

use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::graph::{Graph, Object};
use super::log::EventLog;
use super::service::Service;
use super::stage;

/// Objects whose services were killed for ever might never go.
const ROUNDS_MAX: usize = 12;
/// How often each service is killed before the last object of the graph can go.
const ROUNDS_MIN: usize = 3;
/// How long a round waits for the log to say something new.
const NEWS_MAX: Duration = Duration::from_secs(2);

/// Which service was killed when.
pub(super) struct Kills(Vec<(&'static str, Timestamp)>);

impl Kills {
    /// Until the log says that all of a graph is gone, but not for ever: each time that it says something new, all of
    /// the three are killed, one a moment after the other, and start again. Somebody cleans up after one object until
    /// each was killed several times, so that a quick deletion is met as well.
    pub(super) fn at_changes(
        services: &mut [Service; 3],
        log: &EventLog,
        graph: &Graph,
        cleaned_up: &Object,
        seed: u64,
    ) -> Self {
        println!("the seed of the kills is {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let mut kills = Vec::new();
        let mut seen = 0;
        for round in 1..=ROUNDS_MAX {
            let deadline = Instant::now() + NEWS_MAX;
            while log.changes(graph) == seen && Instant::now() < deadline {
                sleep(Duration::from_millis(10));
            }
            seen = log.changes(graph);
            if graph.objects().all(|object| log.is_erased(object)) {
                break;
            }
            services.shuffle(&mut rng);
            for service in &mut *services {
                sleep(Duration::from_millis(rng.random_range(5..50)));
                kills.push((service.name, Timestamp::now()));
                service.kill();
            }
            // The one between the others comes last: until then they hear nothing of each other, however long it takes.
            services.sort_by_key(|service| service.name == "region");
            services.iter_mut().for_each(Service::restart);
            if round == ROUNDS_MIN {
                stage::of(services.each_ref(), cleaned_up).end_cleanup(cleaned_up);
            }
        }
        log.until_all_is_erased(graph);
        Self(kills)
    }

    /// That each service was killed several times while it had objects of the graph, which are gone now.
    pub(super) fn assert_met(&self, services: [&Service; 3], graph: &Graph) {
        for service in services {
            let own = graph.objects().filter(|object| object.service == service.name);
            let last = own.map(|object| service.erased_at(object)).max().expect("it had some");
            let own = self.0.iter().filter(|(name, _)| *name == service.name);
            let met = own.filter(|(_, time)| *time < last).count();
            let all = &self.0;
            assert!(
                met >= ROUNDS_MIN,
                "{met} kills of {} before {last}: {all:?}",
                service.name
            );
        }
    }
}
