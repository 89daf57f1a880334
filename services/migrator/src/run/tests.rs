//! Passes and their ends.

use super::*;

fn outcome(number: usize, written: Written) -> Outcome {
    Outcome {
        object: format!("shop/o{number}"),
        written,
    }
}

fn all(written: &Written, number: usize) -> Vec<Outcome> {
    (0..number).map(|at| outcome(at, written.clone())).collect()
}

fn refused() -> Written {
    Written::Refused {
        why: "422: no".to_owned(),
    }
}

#[test]
fn success_takes_a_pass_that_changes_nothing_after_the_first() {
    let mut run = Run::default();
    assert_eq!(run.page(all(&Written::Unchanged, 3), None), Next::Page);
    assert_eq!(
        run.page(all(&Written::Unchanged, 3), None),
        Next::End(Verdict::Succeeded)
    );
}

#[test]
fn a_resource_without_objects_succeeds() {
    let mut run = Run::default();
    assert_eq!(run.page([], None), Next::Page);
    assert_eq!(run.page([], None), Next::End(Verdict::Succeeded));
}

#[test]
fn objects_that_others_wrote_or_deleted_hold_nothing_up() {
    let mut run = Run::default();
    run.page(all(&Written::Rewritten, 2), None);
    let outcomes = [outcome(0, Written::Conflict), outcome(1, Written::Gone)];
    assert_eq!(run.page(outcomes, None), Next::End(Verdict::Succeeded));
    assert_eq!((run.pass.conflicts, run.pass.gone, run.pass.listed()), (1, 1, 2));
}

#[test]
fn the_counts_of_all_passes_keep_what_the_last_pass_no_longer_shows() {
    let mut run = Run::default();
    let mut outcomes = all(&Written::Rewritten, 3);
    outcomes.push(outcome(3, Written::Gone));
    run.page(outcomes, None);
    run.page([outcome(0, Written::Rewritten)], Some("1".to_owned()));
    run.start_over();
    run.page(all(&Written::Unchanged, 3), None);
    run.page(all(&Written::Unchanged, 3), None);
    assert_eq!(run.pass.rewritten, 0);
    let expected = Counts {
        rewritten: 4,
        unchanged: 6,
        gone: 1,
        ..Counts::default()
    };
    assert_eq!(run.all_passes(), expected);
}

#[test]
fn passes_that_never_stop_changing_objects_end() {
    let mut run = Run::default();
    for _ in 0..VERIFICATIONS_MAX {
        assert_eq!(run.page([outcome(1, Written::Rewritten)], None), Next::Page);
    }
    let last = run.page([outcome(1, Written::Rewritten)], None);
    assert_eq!(last, Next::End(Verdict::NeverUnchanged));
}

#[test]
fn one_refused_object_does_not_keep_the_others_from_being_written() {
    let mut run = Run::default();
    let mut outcomes = all(&Written::Rewritten, 999);
    outcomes.push(outcome(999, refused()));
    assert_eq!(run.page(outcomes, None), Next::End(Verdict::ObjectsRefused));
    assert_eq!((run.pass.rewritten, run.pass.refused), (999, 1));
    assert_eq!(run.refused[0].object, "shop/o999");
}

#[test]
fn of_many_refused_objects_some_are_named_and_all_are_counted() {
    let mut run = Run::default();
    run.page(all(&refused(), REFUSED_LISTED_MAX + 1), None);
    assert_eq!(run.refused.len(), REFUSED_LISTED_MAX);
    assert_eq!(run.pass.refused, 101);
}

#[test]
fn a_page_with_a_token_is_not_the_last() {
    let mut run = Run::default();
    assert_eq!(run.page([], Some("1".to_owned())), Next::Page);
    assert_eq!((run.passes, run.token.as_deref()), (0, Some("1")));
    assert_eq!(run.go_on("2".to_owned()), Next::Page);
    assert_eq!(run.token.as_deref(), Some("2"));
}

#[test]
fn a_list_that_starts_over_forgets_no_change_of_its_pass() {
    let mut run = Run::default();
    run.page([], None);
    run.page([outcome(0, Written::Rewritten)], Some("1".to_owned()));
    assert_eq!(run.start_over(), Next::Page);
    assert_eq!(run.page(all(&Written::Unchanged, 2), None), Next::Page);
}

#[test]
fn a_refusal_is_counted_once_however_often_the_list_starts_over() {
    let mut run = Run::default();
    run.page([outcome(0, refused())], Some("1".to_owned()));
    run.start_over();
    run.page([outcome(0, refused())], None);
    assert_eq!((run.pass.refused, run.refused.len()), (1, 1));
}

#[test]
fn a_list_that_expires_again_and_again_ends() {
    let mut run = Run::default();
    for _ in 0..RESTARTS_MAX {
        assert_eq!(run.start_over(), Next::Page);
    }
    assert_eq!(run.start_over(), Next::End(Verdict::ListExpires));
}

/// As if the objects were to blame where another definition refuses them, and a new migration were in vain.
#[test]
fn what_was_refused_while_the_target_changed_is_outdated() {
    let counting = [
        Next::Page,
        Next::End(Verdict::Succeeded),
        Next::End(Verdict::ObjectsRefused),
    ];
    let others = [
        Next::End(Verdict::NeverUnchanged),
        Next::End(Verdict::ListExpires),
        Next::End(Verdict::Impossible { why: "no".to_owned() }),
    ];
    let outdated = Next::End(Verdict::Outdated(Outdated::Redefined));
    for next in counting {
        assert_eq!(next.clone().unless(None), next);
        assert_eq!(next.clone().unless(Some(Outdated::Redefined)), outdated, "{next:?}");
    }
    for next in others {
        assert_eq!(next.clone().unless(Some(Outdated::Redefined)), next);
    }
}
