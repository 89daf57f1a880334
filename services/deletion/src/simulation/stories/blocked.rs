//! What people are told of objects that wait: once for each set of others that an object waits for, over any number of
//! processes.

use std::collections::BTreeMap;
use std::time::Duration;

use super::calm;
use crate::notice::Notice;
use crate::object::Key;
use crate::simulation::{Bug, Play};

/// Seconds between two looks.
const LOOK_EVERY: u64 = 10;

/// As if people were told with every look, of the first others alone, or anew by each process.
#[test]
fn each_set_of_others_that_an_object_waits_for_is_reported_once() {
    all(Bug::None).expect("nothing is broken");
}

/// All of these.
pub(in super::super) fn all(bug: Bug) -> Result<(), String> {
    wait_for_others(bug)?;
    wait_for_the_same(bug)?;
    for died in 0..3 {
        die_around_a_report(bug, died)?;
    }
    Ok(())
}

impl Play {
    /// So many seconds pass, in which one service does all that it can. Every event that it records or finds there
    /// already: what each is about, and says.
    pub(super) fn look_for(&mut self, at: usize, seconds: u64) -> Result<Vec<(Key, Notice)>, String> {
        let mut reported = Vec::new();
        for _ in 0..seconds / LOOK_EVERY {
            self.wait_for_a_look(at)?;
            self.controllers[at].look(self.bug);
            reported.extend(self.record_events(at));
        }
        Ok(reported)
    }

    fn wait_for_a_look(&mut self, at: usize) -> Result<(), String> {
        self.controllers[at].wait(Duration::from_secs(LOOK_EVERY));
        self.do_all(at)?;
        while self.controllers[at].ask_for_holder(&self.world, self.bug) {}
        self.do_all(at)
    }

    fn record_events(&mut self, at: usize) -> Vec<(Key, Notice)> {
        let record = || self.controllers[at].record_event(&mut self.world, self.bug);
        std::iter::from_fn(record).collect()
    }

    /// The messages about an object in so many seconds.
    fn messages_about(&mut self, key: &Key, seconds: u64) -> Result<Vec<String>, String> {
        let reported = self.look_for(0, seconds)?.into_iter();
        let about = reported.filter(|(about, _)| about == key);
        Ok(about.map(|(_, notice)| notice.message).collect())
    }

    /// An identity is created under a project that is being deleted, past the server that would refuse it.
    fn create_late(&mut self, identity: &Key) {
        let named = BTreeMap::from([("project", "a".to_owned())]);
        self.world.create(identity.clone(), named, true, false);
    }

    /// An object goes, with all that its ingester and other controllers have to do for that, at one time.
    fn finish(&mut self, key: &Key) -> Result<(), String> {
        for _ in 0..8 {
            self.world.others(key, true);
            self.do_all(0)?;
        }
        match self.world.servers.objects.contains_key(key) {
            false => Ok(()),
            true => Err(format!("{key} stays")),
        }
    }

    fn expect_events(&self, about: &Key, expected: usize) -> Result<(), String> {
        let events = self.world.events_about(about);
        match events.len() == expected {
            true => Ok(()),
            false => Err(format!("of {about} there are {expected} sets to report: {events:?}")),
        }
    }
}

fn expect(reported: &[String], expected: &[&str]) -> Result<(), String> {
    match reported == expected {
        true => Ok(()),
        false => Err(format!("people are told {reported:?}, and not {expected:?}")),
    }
}

/// A project waits for a budget, then also for an identity that goes with it, then for the budget alone again. Of what
/// comes and goes before it was waited for long enough, nobody is told.
fn wait_for_others(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let project = play.with("Project", "a", &[]);
    let budget = play.with("Budget", "a", &[("project", "a")]);
    let identity = play.world.services.key("Identity", "a");
    play.settled();
    play.bug = bug;
    play.delete(&project);
    let first = format!("still in use by {budget}");
    let both = format!("{first}, {identity}");
    expect(&play.messages_about(&project, 100)?, &[&*first])?;
    play.create_late(&identity);
    expect(&play.messages_about(&project, 100)?, &[&*both])?;
    play.finish(&identity)?;
    expect(&play.messages_about(&project, 100)?, &[&*first])?;
    play.expect_events(&project, 2)?;

    play.create_late(&identity);
    expect(&play.messages_about(&project, 20)?, &[])?;
    play.finish(&identity)?;
    expect(&play.messages_about(&project, 100)?, &[])?;
    play.crash(0);
    expect(&play.messages_about(&project, 100)?, &[&*first])?;
    play.expect_events(&project, 2)?;

    // As events are after an hour. The process that recorded one does not repeat it, and the next one does.
    play.world.events.clear();
    expect(&play.messages_about(&project, 100)?, &[])?;
    play.crash(0);
    expect(&play.messages_about(&project, 100)?, &[&*first])?;
    play.expect_events(&project, 1)?;
    end(&mut play, &project, &budget)
}

/// The budget goes, and so does the project: it does not count as blocked any more.
fn end(play: &mut Play, project: &Key, budget: &Key) -> Result<(), String> {
    let (blocked, longest) = play.controllers[0].blocked("Project");
    if blocked != 1 || longest < Duration::from_secs(60) {
        return Err(format!("{blocked} projects are blocked for {longest:?}"));
    }
    play.delete(budget);
    play.settle()?;
    let (blocked, _) = play.controllers[0].blocked("Project");
    match blocked == 0 && play.erased(project) {
        true => play.hold(),
        false => Err(format!("{project} could go, and {blocked} are blocked")),
    }
}

/// A network waits for a cluster, which waits for two budgets and then for one of them. A process that comes after
/// that finds the network waiting for the same cluster, and in the end for another set of budgets.
fn wait_for_the_same(bug: Bug) -> Result<(), String> {
    let mut play = calm(false);
    let network = play.with("Network", "a", &[]);
    let cluster = play.with("Cluster", "a", &[("network", "a")]);
    let budgets = ["a", "b"].map(|name| play.with("Budget", name, &[("cluster", "a")]));
    play.settled();
    play.bug = bug;
    play.delete(&network);
    let reported = play.look_for(0, 100)?;
    let via = format!("via {cluster}");
    if !reported
        .iter()
        .any(|(about, notice)| *about == network && notice.roots.contains(&via))
    {
        return Err(format!("nobody is told how the budgets hold {network}: {reported:?}"));
    }
    play.expect_events(&network, 1)?;
    play.expect_events(&cluster, 1)?;
    play.delete(&budgets[0]);
    play.do_all(0)?;
    play.finish(&budgets[0])?;
    play.crash(0);
    play.look_for(0, 100)?;
    play.expect_events(&network, 1)?;
    play.expect_events(&cluster, 2)
}

/// A process dies before it looks at what waits, before it records an event, or after that.
fn die_around_a_report(bug: Bug, died: usize) -> Result<(), String> {
    let mut play = calm(false);
    let project = play.with("Project", "a", &[]);
    play.with("Budget", "a", &[("project", "a")]);
    play.settled();
    play.bug = bug;
    play.delete(&project);
    play.look_for(0, 30)?;
    play.expect_events(&project, 0)?;
    let die = |play: &mut Play, at: usize| {
        if at == died {
            play.crash(0);
        }
    };
    play.wait_for_a_look(0)?;
    die(&mut play, 0);
    play.controllers[0].look(bug);
    die(&mut play, 1);
    play.record_events(0);
    die(&mut play, 2);
    play.look_for(0, 100)?;
    play.expect_events(&project, 1)
}
