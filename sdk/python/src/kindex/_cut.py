"""Where a batch ends. Pure: marks of records in, the next piece out."""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence

from ._records import OPERATIONS

#: What the server stores of one batch at most.
BATCH_POINTS_MAX = 10_000
BATCH_BYTES_MAX = 1_000_000


class Mark(NamedTuple):
    """A record as the cutter sees it: its place, its points, and their size in protobuf."""

    kind: int
    start: int
    stop: int
    points: int
    wire: int


class Limits(NamedTuple):
    """A batch is cut as soon as it has this many points or bytes."""

    points: int
    bytes: int


class Piece(NamedTuple):
    """The next thing to send: a batch of points, or one operation."""

    kind: int
    start: int
    stop: int
    points: int


def next_piece(marks: Sequence[Mark], limits: Limits, flush: bool) -> Optional[Piece]:
    """The piece that the marks begin with, or `None` while it may still grow.

    Operations keep their place: one that follows points ends their batch. `flush` ends the batch with the last mark.
    """
    points_max = min(limits.points, BATCH_POINTS_MAX)
    bytes_max = min(limits.bytes, BATCH_BYTES_MAX)
    points = wire = 0
    for index, mark in enumerate(marks):
        if mark.kind in OPERATIONS:
            if points:
                return _batch(marks[:index], points)
            return Piece(mark.kind, mark.start, mark.stop, 0)
        if points and (points + mark.points > points_max or wire + mark.wire > bytes_max):
            return _batch(marks[:index], points)
        points += mark.points
        wire += mark.wire
        if points >= points_max or wire >= bytes_max:
            return _batch(marks[: index + 1], points)
    return _batch(marks, points) if flush and points else None


def _batch(marks: Sequence[Mark], points: int) -> Piece:
    kind = next(mark.kind for mark in marks if mark.points)
    return Piece(kind, marks[0].start, marks[-1].stop, points)
