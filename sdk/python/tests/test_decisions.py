"""The pure decisions: where a batch ends, what a refusal means, how long to wait, which ids are given."""

from __future__ import annotations

import uuid
from typing import List, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kindex._classify import Decision, Detail, Refusal, Registration, backoff_s, classify, classify_registration
from kindex._classify import code_of_status
from kindex._cut import BATCH_BYTES_MAX, BATCH_POINTS_MAX, Limits, Mark, Piece, next_piece
from kindex._records import FINISH, PARAMS, POINTS
from kindex._uuid7 import Uuid7
from kindex._warn import Warner


def marks(sizes: List[Tuple[int, int, int]]) -> List[Mark]:
    return [Mark(kind, at * 10, at * 10 + 10, points, wire) for at, (kind, points, wire) in enumerate(sizes)]


LIMITS = Limits(1_000, 900_000)


def test_a_batch_grows_until_it_has_its_points() -> None:
    assert next_piece(marks([(POINTS, 3, 150)] * 333), LIMITS, False) is None
    piece = next_piece(marks([(POINTS, 1, 50)] * 1_200), LIMITS, False)
    assert piece == Piece(POINTS, 0, 10_000, 1_000)


def test_a_batch_never_passes_its_points_or_bytes() -> None:
    piece = next_piece(marks([(POINTS, 3, 150)] * 400), LIMITS, False)
    assert piece is not None and piece.points == 999
    piece = next_piece(marks([(POINTS, 10, 400_000)] * 3), LIMITS, False)
    assert piece is not None and piece.points == 20


def test_limits_above_what_the_server_takes_are_not_used() -> None:
    wide = Limits(10**9, 10**12)
    piece = next_piece(marks([(POINTS, 500, 20_000)] * 30), wide, True)
    assert piece is not None and piece.points == BATCH_POINTS_MAX
    piece = next_piece(marks([(POINTS, 500, 150_000)] * 30), wide, True)
    assert piece is not None and piece.points * 300 <= BATCH_BYTES_MAX


def test_an_operation_keeps_its_place_between_points() -> None:
    row = marks([(POINTS, 3, 150), (PARAMS, 0, 0), (POINTS, 3, 150), (FINISH, 0, 0)])
    kinds = []
    while row:
        piece = next_piece(row, LIMITS, False)
        assert piece is not None
        kinds.append((piece.kind, piece.points))
        row = [mark for mark in row if mark.start >= piece.stop]
    assert kinds == [(POINTS, 3), (PARAMS, 0), (POINTS, 3), (FINISH, 0)]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([POINTS, POINTS, PARAMS]), st.integers(1, 500), st.integers(44, 150_000))),
    st.integers(1, 12_000),
    st.integers(1, 2_000_000),
)
def test_pieces_cover_all_records_once(sizes: List[Tuple[int, int, int]], points: int, size: int) -> None:
    row = marks([(kind, count if kind == POINTS else 0, wire if kind == POINTS else 0) for kind, count, wire in sizes])
    expected, at = sum(mark.points for mark in row), 0
    while row:
        piece = next_piece(row, Limits(points, size), True)
        assert piece is not None and piece.start == at and piece.stop > at
        assert piece.points <= BATCH_POINTS_MAX
        expected -= piece.points
        at = piece.stop
        row = [mark for mark in row if mark.start >= at]
    assert expected == 0


def refusal(code: str, *details: str) -> Refusal:
    return Refusal(code, "no", tuple(Detail(one, "") for one in details))


@pytest.mark.parametrize(
    "status, decision",
    [
        (408, Decision.RETRY),
        (429, Decision.RETRY),
        (500, Decision.RETRY),
        (502, Decision.RETRY),
        (503, Decision.RETRY),
        (504, Decision.RETRY),
        (400, Decision.SET_ASIDE),
        (401, Decision.HOLD),
        (403, Decision.HOLD),
        (404, Decision.REGISTER),
        (409, Decision.SET_ASIDE),
        (413, Decision.SET_ASIDE),
        (418, Decision.SET_ASIDE),
        (422, Decision.SET_ASIDE),
    ],
)
def test_every_http_status_has_one_consequence(status: int, decision: Decision) -> None:
    assert classify(refusal(code_of_status(status))) is decision


def test_a_crashed_run_is_resumed_and_an_ended_one_is_not() -> None:
    assert classify(refusal("FAILED_PRECONDITION", "RUN_CRASHED")) is Decision.RESUME
    assert classify(refusal("FAILED_PRECONDITION", "RUN_TERMINAL")) is Decision.SET_ASIDE
    assert classify(Refusal("FAILED_PRECONDITION", "RUN_CRASHED: resume it")) is Decision.RESUME


@pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN"])
def test_what_may_pass_is_retried(code: str) -> None:
    assert classify(refusal(code)) is Decision.RETRY
    assert classify_registration(refusal(code), True) is Registration.RETRY


def test_a_refused_registration_never_costs_data() -> None:
    assert classify_registration(refusal("NOT_FOUND"), True) is Registration.WITHOUT_TOKEN
    assert classify_registration(refusal("NOT_FOUND"), False) is Registration.HOLD
    assert classify_registration(refusal("FAILED_PRECONDITION", "RUN_TERMINAL"), True) is Registration.ENDED
    assert classify_registration(refusal("FAILED_PRECONDITION", "RESUME_TOKEN_REQUIRED"), False) is Registration.LOST
    for reason in ("RESUME_TOKEN_USED", "RESUME_TOKEN_EXPIRED", "RESUME_TOKEN_INVALID"):
        assert classify_registration(refusal("PERMISSION_DENIED", reason), True) is Registration.LOST
    assert classify_registration(refusal("PERMISSION_DENIED", "KEY_SCOPE"), True) is Registration.HOLD
    assert classify_registration(refusal("UNAUTHENTICATED"), False) is Registration.HOLD


def test_the_pause_doubles_up_to_its_limit_and_honors_the_server() -> None:
    assert [backoff_s(attempt, 0.5, 30, 0.0, None) for attempt in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert backoff_s(0, 0.5, 30, 1.0, None) == 0.25
    assert backoff_s(0, 0.5, 30, 0.5, 7.0) == 7.0
    assert backoff_s(10**6, 0.5, 30, 0.0, None) == 30


def test_ids_are_of_version_7_and_ascend_even_when_the_clock_does_not() -> None:
    times = iter([5, 5, 5, 4, 6, 1])
    make = Uuid7(lambda: next(times), lambda count: b"\xff" * count)
    ids = [make() for _ in range(6)]
    assert all(one.version == 7 and one.variant == uuid.RFC_4122 for one in ids)
    assert ids == sorted(ids) and len(set(ids)) == 6
    assert ids[0].int >> 80 == 5


def test_warnings_of_one_kind_are_limited_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    warn = Warner(lambda: now[0])
    for _ in range(1_000):
        warn("nan", "a value is not a number")
    warn("other", "something else")
    now[0] = 11.0
    warn("nan", "a value is not a number")
    assert [record.getMessage() for record in caplog.records] == [
        "a value is not a number",
        "something else",
        "a value is not a number (999 more like this)",
    ]
