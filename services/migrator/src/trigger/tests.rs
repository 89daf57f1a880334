//! The cells of the decision, one a rule of the proposal.

use super::*;
use crate::migration::Target;

fn hash(text: &str) -> Hash {
    Hash::shown(text).expect("not empty")
}

fn minute(number: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + 60 * number).expect("in range")
}

const MINUTE: Duration = Duration::from_secs(60);

const SETTINGS: Settings = Settings {
    period: Duration::from_secs(600),
    settle: Duration::from_secs(30),
    retry: Duration::from_secs(3_600),
    launch: true,
};

fn observation<'a>(
    discovered: &'a Discovered,
    state: Option<&'a State>,
    migrations: &'a [Migration],
) -> Observation<'a> {
    Observation {
        now: minute(0),
        first: false,
        discovered,
        unchanged_for: MINUTE,
        definition: None,
        state,
        migrations,
        permitted: false,
        spec_fits: true,
    }
}

fn failed(since: i64, cause: Cause) -> Progress {
    Progress::Failed {
        since: minute(since),
        cause,
    }
}

fn agreed(text: &str) -> Discovered {
    Discovered::Agreed(hash(text))
}

fn state(persisted: &[&str], current: &str, heartbeat: i64) -> State {
    State {
        persisted: persisted.iter().map(|text| Encoding::parse(text)).collect(),
        current: Encoding::parse(current),
        heartbeat: Some(minute(heartbeat)),
        definition: None,
    }
}

fn migration(uid: &str, target: &str, progress: Progress) -> Migration {
    Migration {
        name: format!("cronjobs.batch-{uid}"),
        uid: uid.to_owned(),
        target: target_of(target),
        progress,
    }
}

fn target_of(text: &str) -> Target {
    Target {
        hash: Some(hash(text)),
        definition: None,
    }
}

fn stopped(uid: &str) -> Effect {
    Effect::Stop {
        name: format!("cronjobs.batch-{uid}"),
        uid: uid.to_owned(),
    }
}

#[test]
fn the_first_sight_of_a_resource_starts_a_migration_and_then_notes_unknown() {
    let old = [migration("by-hand", "a", Progress::Running)];
    let decision = decide(&observation(&agreed("a"), None, &old), &SETTINGS);
    let expected = [
        stopped("by-hand"),
        Effect::Start,
        Effect::Create(state(&["Unknown"], "a", 0)),
    ];
    assert_eq!(decision.effects, expected);
}

#[test]
fn an_unchanged_version_moves_the_heartbeat_alone() {
    let migrated = state(&["a"], "a", -10);
    let decision = decide(&observation(&agreed("a"), Some(&migrated), &[]), &SETTINGS);
    assert_eq!(decision, Decision::of(vec![Effect::Update(state(&["a"], "a", 0))]));
}

#[test]
fn a_change_replaces_migrations_before_it_is_noted_in_one_update() {
    let before = state(&["a"], "a", -10);
    let done = [
        migration("1", "a", Progress::Succeeded),
        migration("2", "a", Progress::Running),
    ];
    let decision = decide(&observation(&agreed("b"), Some(&before), &done), &SETTINGS);
    let expected = [
        stopped("1"),
        stopped("2"),
        Effect::Start,
        Effect::Update(state(&["a", "b"], "b", 0)),
    ];
    assert_eq!(decision.effects, expected);
}

#[test]
fn a_version_that_comes_back_is_not_listed_twice() {
    let before = state(&["a", "b"], "b", -10);
    let decision = decide(&observation(&agreed("a"), Some(&before), &[]), &SETTINGS);
    let expected = [Effect::Start, Effect::Update(state(&["a", "b"], "a", 0))];
    assert_eq!(decision.effects, expected);
}

#[test]
fn a_migration_that_succeeded_refines_the_state_for_its_own_version_alone() {
    let before = state(&["a", "b"], "b", -10);
    for (target, persisted) in [("b", &["b"][..]), ("a", &["a", "b"])] {
        let done = [
            migration("1", target, Progress::Succeeded),
            migration("2", "b", Progress::Pending),
        ];
        let decision = decide(&observation(&agreed("b"), Some(&before), &done), &SETTINGS);
        assert_eq!(decision.effects, [Effect::Update(state(persisted, "b", 0))], "{target}");
    }
}

#[test]
fn a_migration_of_unknown_target_refines_nothing() {
    let before = state(&["Unknown"], "b", -10);
    let mut manual = migration("1", "b", Progress::Succeeded);
    manual.target = Target::default();
    let done = [manual, migration("2", "b", Progress::Running)];
    let decision = decide(&observation(&agreed("b"), Some(&before), &done), &SETTINGS);
    assert_eq!(decision.effects, [Effect::Update(state(&["Unknown"], "b", 0))]);
}

#[test]
fn a_migration_that_failed_is_replaced_once_it_is_old() {
    let before = state(&["a", "b"], "b", -10);
    let updated = Effect::Update(state(&["a", "b"], "b", 0));
    for (since, replaced) in [(-60, true), (-59, false)] {
        let failed = [migration("1", "b", failed(since, Cause::Refused))];
        let decision = decide(&observation(&agreed("b"), Some(&before), &failed), &SETTINGS);
        let mut expected = vec![updated.clone()];
        if replaced {
            expected.splice(0..0, [stopped("1"), Effect::Start]);
        }
        assert_eq!(decision.effects, expected, "{since}");
    }
}

#[test]
fn a_migration_that_was_outdated_is_replaced_as_soon_as_the_servers_have_settled() {
    let before = state(&["a", "b"], "b", -10);
    for (since, replaced) in [(-1, true), (0, false)] {
        let outdated = [migration("1", "b", failed(since, Cause::Outdated))];
        let effects = decide(&observation(&agreed("b"), Some(&before), &outdated), &SETTINGS).effects;
        assert_eq!(effects.contains(&Effect::Start), replaced, "{since}");
    }
}

#[test]
fn a_migration_that_was_forbidden_is_replaced_once_it_is_permitted() {
    let before = state(&["a", "b"], "b", -10);
    let forbidden = [migration("1", "b", failed(-1, Cause::Forbidden))];
    for permitted in [false, true] {
        let discovered = agreed("b");
        let observation = Observation {
            permitted,
            ..observation(&discovered, Some(&before), &forbidden)
        };
        let effects = decide(&observation, &SETTINGS).effects;
        assert_eq!(effects.contains(&Effect::Start), permitted);
    }
}

#[test]
fn a_state_about_another_resource_is_left_alone() {
    let before = state(&["a", "b"], "b", -10);
    let discovered = agreed("b");
    let observation = Observation {
        spec_fits: false,
        ..observation(&discovered, Some(&before), &[])
    };
    assert_eq!(decide(&observation, &SETTINGS), Decision::found(Finding::WrongSpec));
}

#[test]
fn a_migration_that_somebody_deleted_is_started_again() {
    let before = state(&["a", "b"], "b", -10);
    let decision = decide(&observation(&agreed("b"), Some(&before), &[]), &SETTINGS);
    assert_eq!(decision.effects.first(), Some(&Effect::Start));
}

#[test]
fn a_heartbeat_older_than_the_period_counts_in_the_first_round_alone() {
    for (heartbeat, first, anew) in [(-10, true, false), (-11, true, true), (-11, false, false)] {
        let before = state(&["a"], "a", heartbeat);
        let discovered = agreed("a");
        let at_first = Observation {
            first,
            ..observation(&discovered, Some(&before), &[])
        };
        let recreated = Effect::Recreate(state(&["Unknown"], "a", 0));
        let effects = decide(&at_first, &SETTINGS).effects;
        assert_eq!(effects.contains(&recreated), anew, "{heartbeat} {first}");
    }
}

#[test]
fn a_state_without_a_heartbeat_is_stale() {
    let before = State {
        heartbeat: None,
        ..state(&["a"], "a", 0)
    };
    let discovered = agreed("a");
    let first = Observation {
        first: true,
        ..observation(&discovered, Some(&before), &[])
    };
    assert!(matches!(
        decide(&first, &SETTINGS).effects[..],
        [_, Effect::Recreate(_)]
    ));
}

#[test]
fn a_partial_answer_changes_nothing_however_old_the_heartbeat_is() {
    let before = state(&["a"], "a", -100);
    let first = Observation {
        first: true,
        ..observation(&Discovered::Partial, Some(&before), &[])
    };
    assert_eq!(decide(&first, &SETTINGS), Decision::found(Finding::PartialDiscovery));
}

#[test]
fn divided_servers_stop_what_runs_and_make_the_current_version_unknown() {
    let before = state(&["a"], "a", -10);
    let running = [
        migration("1", "a", Progress::Succeeded),
        migration("2", "a", Progress::Running),
    ];
    let divided = Discovered::Divided([hash("a"), hash("b")].into());
    let decision = decide(&observation(&divided, Some(&before), &running), &SETTINGS);
    let expected = [stopped("2"), Effect::Update(state(&["a", "b"], "Unknown", 0))];
    assert_eq!(decision.effects, expected);
    assert_eq!(decision.finding, Some(Finding::Divided));
}

#[test]
fn servers_that_agree_again_are_believed_after_the_settle_time() {
    let before = state(&["a", "b"], "Unknown", -10);
    let discovered = agreed("b");
    for (seconds, settled) in [(29, false), (30, true)] {
        let agreeing = Observation {
            unchanged_for: Duration::from_secs(seconds),
            ..observation(&discovered, Some(&before), &[])
        };
        let decision = decide(&agreeing, &SETTINGS);
        assert_eq!(decision.effects.contains(&Effect::Start), settled);
        assert_eq!(decision.finding == Some(Finding::Settling), !settled);
    }
}

#[test]
fn a_version_that_settles_may_be_stored_already() {
    let before = state(&["a", "b"], "Unknown", -10);
    let discovered = agreed("c");
    let settling = Observation {
        unchanged_for: Duration::ZERO,
        ..observation(&discovered, Some(&before), &[])
    };
    let expected = Effect::Update(state(&["a", "b", "c"], "Unknown", 0));
    assert_eq!(decide(&settling, &SETTINGS).effects, [expected]);
}

#[test]
fn starting_is_left_to_people_where_the_trigger_is_off() {
    let settings = Settings {
        launch: false,
        ..SETTINGS
    };
    let before = state(&["a"], "a", -10);
    let old = [migration("1", "a", Progress::Running)];
    let decision = decide(&observation(&agreed("b"), Some(&before), &old), &settings);
    assert_eq!(
        decision.effects,
        [stopped("1"), Effect::Update(state(&["a", "b"], "b", 0))]
    );
}

mod defined {
    //! What a CustomResourceDefinition adds.

    use super::*;

    fn definition(uid: &str, generation: i64) -> Definition {
        Definition {
            uid: uid.to_owned(),
            generation,
        }
    }

    fn defined(generation: i64, storage: &str, stored: &[&str]) -> Defined {
        Defined {
            definition: definition("u", generation),
            storage: hash(storage),
            stored: stored.iter().map(|text| hash(text)).collect(),
        }
    }

    fn before(persisted: &[&str], current: &str) -> State {
        State {
            definition: Some(definition("u", 3)),
            ..state(persisted, current, -10)
        }
    }

    fn decided(defined: &Defined, before: &State, discovered: &Discovered) -> Vec<Effect> {
        let observation = Observation {
            definition: Some(defined),
            ..observation(discovered, Some(before), &[])
        };
        decide(&observation, &SETTINGS).effects
    }

    fn persisted(effects: &[Effect]) -> Vec<String> {
        match effects.last() {
            Some(Effect::Update(state)) => state.persisted.iter().map(Encoding::to_string).collect(),
            other => panic!("no update but {other:?}"),
        }
    }

    #[test]
    fn a_change_there_and_back_between_two_rounds_is_migrated() {
        let effects = decided(&defined(5, "a", &["a", "b"]), &before(&["a"], "a"), &agreed("a"));
        assert!(matches!(effects[..], [Effect::Start, Effect::Update(_)]));
        assert_eq!(persisted(&effects), ["a", "b"]);
    }

    #[test]
    fn one_change_that_leaves_the_version_alone_is_none() {
        let effects = decided(&defined(4, "a", &["a"]), &before(&["a"], "a"), &agreed("a"));
        assert_eq!(effects.len(), 1);
        assert_eq!(persisted(&effects), ["a"]);
    }

    /// What was verified was so for the definition before: nobody could drop the other version.
    #[test]
    fn a_changed_definition_that_lists_other_versions_is_verified_once_more() {
        let effects = decided(&defined(4, "a", &["a", "b"]), &before(&["a"], "a"), &agreed("a"));
        assert!(matches!(effects[..], [Effect::Start, Effect::Update(_)]));
        assert_eq!(persisted(&effects), ["a"]);
    }

    #[test]
    fn a_state_of_another_program_says_nothing_of_a_definition() {
        let foreign = State {
            definition: None,
            ..before(&["a"], "a")
        };
        let effects = decided(&defined(4, "a", &["a"]), &foreign, &agreed("a"));
        assert!(matches!(effects[..], [Effect::Start, Effect::Recreate(_)]));
    }

    #[test]
    fn a_definition_that_was_created_again_begins_anew() {
        let other = Defined {
            definition: definition("another", 1),
            ..defined(1, "a", &["a"])
        };
        let effects = decided(&other, &before(&["a"], "a"), &agreed("a"));
        assert!(matches!(effects[..], [Effect::Start, Effect::Recreate(_)]));
    }

    #[test]
    fn a_version_that_discovery_does_not_show_yet_may_be_stored_already() {
        let effects = decided(&defined(4, "b", &["a", "b"]), &before(&["a"], "a"), &agreed("a"));
        assert_eq!(persisted(&effects), ["a", "b"]);
    }

    /// As after a change there and back of which the trigger saw the middle: discovery showed nothing of it.
    #[test]
    fn a_migration_for_an_earlier_definition_says_nothing_of_what_was_stored_since() {
        let succeeded = |generation| {
            let mut one = migration("1", "a", Progress::Succeeded);
            one.target.definition = Some(definition("u", generation));
            [one]
        };
        let (defined, discovered) = (defined(5, "a", &["a", "b"]), agreed("a"));
        let mut before = before(&["a", "b"], "a");
        before.definition = Some(definition("u", 4));
        for (generation, expected) in [(3, &["a", "b"][..]), (5, &["a"])] {
            let migrations = succeeded(generation);
            let observation = Observation {
                definition: Some(&defined),
                ..observation(&discovered, Some(&before), &migrations)
            };
            let effects = decide(&observation, &SETTINGS).effects;
            assert_eq!(persisted(&effects), expected, "{generation}");
            assert_eq!(effects.contains(&Effect::Start), generation == 3);
        }
    }

    #[test]
    fn a_migration_that_failed_is_replaced_at_once_where_the_definition_changed() {
        let mut failed = migration("1", "b", failed(-1, Cause::Refused));
        failed.target.definition = Some(definition("u", 3));
        let before = before(&["a", "b"], "b");
        for (generation, replaced) in [(3, false), (4, true)] {
            let defined = defined(generation, "b", &["a", "b"]);
            let (discovered, migrations) = (agreed("b"), [failed.clone()]);
            let observation = Observation {
                definition: Some(&defined),
                ..observation(&discovered, Some(&before), &migrations)
            };
            let effects = decide(&observation, &SETTINGS).effects;
            assert_eq!(effects.contains(&Effect::Start), replaced, "{generation}");
        }
    }

    #[test]
    fn an_unserved_storage_version_is_compared_by_the_definition() {
        let discovered = Discovered::NoHash;
        let effects = decided(&defined(4, "b", &["a", "b"]), &before(&["a"], "a"), &discovered);
        assert!(matches!(effects[..], [Effect::Start, Effect::Update(_)]));
        let unknown = decide(&observation(&discovered, None, &[]), &SETTINGS);
        assert_eq!(unknown, Decision::found(Finding::NoHash));
    }
}
