"""Looks into spools without locking or changing them: for `kindex-runs status` and `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Tuple

from . import _json
from ._folder import META, is_live, read_json
from ._frames import scan
from ._journal import Progress, State, read_journal
from ._records import OPERATIONS, POINTS, SHAPE, decode_operation, decode_points, decode_shape, point_count, shape_of
from ._segment import START, read_extents


class SpoolStatus(NamedTuple):
    """What waits in one spool."""

    run_id: str
    project: str
    pid: int
    is_live: bool
    points: int
    operations: int
    damaged: int


def _waiting(path: Path) -> Iterator[Tuple[bytes, Dict[int, Tuple[str, ...]]]]:
    """The payloads of the records that are not answered, with the shapes known at that place."""
    state = read_journal(path) or State()
    progress: Progress = state.progress
    open_places = [(item.order, item.start, item.stop) for item in state.open.values()]
    for extent in read_extents(path):
        shapes: Dict[int, Tuple[str, ...]] = {}
        for found in scan(extent.path.read_bytes()[: extent.end], START).frames:
            if found.payload[0] == SHAPE:
                shape, names = decode_shape(found.payload)
                shapes[shape] = names
                continue
            is_cut = (extent.order, found.start) < (progress.order, progress.offset)
            is_open = any(
                order == extent.order and start <= found.start < stop for order, start, stop in open_places
            )
            if not is_cut or is_open:
                yield found.payload, shapes


def status_of(path: Path) -> SpoolStatus:
    """Count what waits in a spool."""
    meta = read_json(path / META)
    points = operations = 0
    for payload, _ in _waiting(path):
        points += point_count(payload) if payload[0] == POINTS else 0
        operations += payload[0] in OPERATIONS
    damaged = sum(scan(extent.path.read_bytes(), START).damaged for extent in read_extents(path))
    run_id, project = str(meta.get("run_id", "")), str(meta.get("project", ""))
    return SpoolStatus(run_id, project, int(meta.get("pid", 0)), is_live(path), points, operations, damaged)


def records_of(path: Path) -> Iterator[Dict[str, Any]]:
    """What waits in a spool, as JSON objects."""
    run_id = str(read_json(path / META).get("run_id", ""))
    for payload, shapes in _waiting(path):
        if payload[0] != POINTS:
            yield {"run_id": run_id, "kind": payload[0], **decode_operation(payload)}
        elif shape_of(payload) in shapes:
            record = decode_points(payload, shapes)
            for name, value in zip(record.names, record.values):
                yield {
                    "run_id": run_id,
                    "name": name,
                    "step": record.step,
                    "value": _json.readable(value),
                    "timestamp": _json.rfc3339(record.time_us),
                }
