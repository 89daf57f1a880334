"""The reading side of one spool: which item comes next, what is in it, and what became of it. Sends nothing.

Works alike on the spool of this process, which grows, and on one that a dead process left behind.
"""

from __future__ import annotations

import os
import threading
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Protocol, Tuple

from ._cut import Limits, Mark, Piece, next_piece
from ._folder import SpoolFolder
from ._frames import Frame, scan
from ._journal import Item, Journal
from ._records import (
    ARTIFACT,
    FINISH,
    POINTS,
    SHAPE,
    Points,
    decode_operation,
    decode_points,
    decode_shape,
    point_count,
    shape_of,
    wire_bytes,
)
from ._segment import START, Extent, read_extents, sync

_READ_BYTES = 1 << 18


class Source(Protocol):
    """Where the segments come from: the writer of this process, or a folder that nobody writes."""

    def extents(self) -> List[Extent]: ...

    def forget(self, order: int) -> None: ...


class DeadSpool:
    """The segments of a folder that nobody writes."""

    def __init__(self, folder: Path) -> None:
        self._extents = read_extents(folder)

    def extents(self) -> List[Extent]:
        return list(self._extents)

    def forget(self, order: int) -> None:
        for extent in [extent for extent in self._extents if extent.order == order]:
            self._extents.remove(extent)
            extent.path.unlink()


class _View:
    """What was read so far of one segment: its shapes, and the marks of the records that are not cut yet."""

    def __init__(self, extent: Extent, cut_to: int) -> None:
        self.path = extent.path
        self.read_to = START
        self.shapes: Dict[int, Tuple[str, ...]] = {}
        self._wire: Dict[int, int] = {}
        self.marks: List[Mark] = []
        self.damaged = 0
        self._cut_to = cut_to

    def read(self, extent: Extent, at_most: Optional[int]) -> bool:
        """Read on towards the end of the extent; False when there is nothing more."""
        if self.read_to >= extent.end:
            return False
        stop = extent.end if at_most is None else min(extent.end, self.read_to + at_most)
        data = _pread(self.path, self.read_to, stop)
        found = scan(data)
        whole = stop == extent.end
        if not found.frames and not whole:
            return self.read(extent, (at_most or _READ_BYTES) * 8)
        for one in found.frames:
            self._note(one, self.read_to)
        # The last frame of a part of a segment may be incomplete: the next reading begins with it.
        cut_off = not whole and found.end > found.frames[-1].stop
        self.damaged += found.damaged - cut_off
        self.read_to = extent.end if whole else self.read_to + found.frames[-1].stop
        return True

    def _note(self, found: Frame, base: int) -> None:
        kind, points, wire = found.payload[0], 0, 0
        if kind == SHAPE:
            shape, names = decode_shape(found.payload)
            self.shapes[shape], self._wire[shape] = names, wire_bytes(names)
        elif kind == POINTS:
            shape = shape_of(found.payload)
            points, wire = point_count(found.payload), self._wire.get(shape, 0)
            if shape not in self.shapes:
                self.damaged += 1
                return
        start, stop = base + found.start, base + found.stop
        if start >= self._cut_to:
            self.marks.append(Mark(kind, start, stop, points, wire))

    def drop_marks(self, stop: int) -> None:
        count = 0
        while count < len(self.marks) and self.marks[count].start < stop:
            count += 1
        del self.marks[:count]


def _pread(path: Path, start: int, stop: int) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, stop - start, start)
    finally:
        os.close(fd)


class Left(NamedTuple):
    """What a spool still holds."""

    points: int
    operations: int


class Delivery:
    """The items of one spool in their order. Safe to use from the sender and the uploader at once."""

    def __init__(
        self,
        folder: SpoolFolder,
        source: Source,
        limits: Limits,
        fsync: bool,
        sequence: Callable[[], int],
        new_id: Callable[[], uuid.UUID],
    ) -> None:
        self.folder = folder
        self._source = source
        self._limits = limits
        self._fsync = fsync
        self._sequence = sequence
        self._new_id = new_id
        self._lock = threading.RLock()
        self._journal = Journal(folder.path, fsync)
        self._views: Dict[int, _View] = {}
        self._flush_to = (0, 0)

    @property
    def delivered(self) -> int:
        """Points that the server has answered."""
        return self._journal.state.progress.delivered

    @property
    def set_aside(self) -> int:
        """Points that the server refused for good."""
        return self._journal.state.progress.set_aside

    @property
    def damaged(self) -> int:
        """Stretches of the spool that could not be read."""
        return sum(view.damaged for view in self._views.values())

    def request_flush(self) -> None:
        """Let the batch that is growing now end with the newest record."""
        extents = self._source.extents()
        if extents:
            self._flush_to = (extents[-1].order, extents[-1].end)

    def next_item(self) -> Optional[Item]:
        """The oldest item that is not answered, artifacts aside, cut now if need be. Stored when this returns."""
        with self._lock:
            waiting = list(self._journal.state.open.values())
            for item in waiting:
                if item.kind != ARTIFACT and (item.kind != FINISH or len(waiting) == 1):
                    return item
            if any(item.kind == FINISH for item in waiting):
                return None
            while True:
                cut = self._cut_one()
                if cut is None or (cut.kind == FINISH and len(self._journal.state.open) > 1):
                    return None
                if cut.kind != ARTIFACT:
                    return cut

    def next_artifact(self) -> Optional[Item]:
        """The oldest artifact that is not uploaded."""
        with self._lock:
            return next((item for item in self._journal.state.open.values() if item.kind == ARTIFACT), None)

    def points(self, item: Item) -> List[Points]:
        """The points of a batch: the same at every call, in every process."""
        with self._lock:
            view = self._view_of(item)
        payloads = (found.payload for found in scan(_pread(view.path, item.start, item.stop)).frames)
        points = (one for one in payloads if one[0] == POINTS and shape_of(one) in view.shapes)
        return [decode_points(one, view.shapes) for one in points]

    def operation(self, item: Item) -> Dict[str, Any]:
        """The content of an operation."""
        with self._lock:
            view = self._view_of(item)
        found = scan(_pread(view.path, item.start, item.stop)).frames
        return decode_operation(found[0].payload) if found else {}

    def done(self, item: Item, outcome: int) -> None:
        """The item is answered, or set aside. Errors: `OSError`, and then it is still open."""
        with self._lock:
            self._journal.done(item.number, outcome)
            self._forget_answered()

    def left(self) -> Left:
        """What is not answered yet. Reads all of it: of a spool that grows, the writer knows better."""
        with self._lock:
            waiting = self._journal.state.open.values()
            points = sum(item.points for item in waiting)
            operations = sum(not item.points for item in waiting)
            for extent in self._uncut():
                view = self._view(extent)
                while view.read(extent, None):
                    pass
                points += sum(mark.points for mark in view.marks)
                operations += sum(not mark.points and mark.kind != SHAPE for mark in view.marks)
            return Left(points, operations)

    @property
    def is_dead(self) -> bool:
        """Whether a dead process left the spool behind."""
        return isinstance(self._source, DeadSpool)

    def is_answered(self) -> bool:
        """Whether nothing is left. Reads no more than was read already."""
        with self._lock:
            return not self._journal.state.open and all(map(self._has_nothing_more, self._uncut()))

    def _has_nothing_more(self, extent: Extent) -> bool:
        progress, view = self._journal.state.progress, self._view(extent)
        if view.read_to < extent.end:
            return extent.order == progress.order and progress.offset >= extent.end
        return all(mark.kind == SHAPE for mark in view.marks)

    def remove(self) -> None:
        """Delete the spool. The lock is given up."""
        self._journal.close()
        self.folder.remove()

    def close(self) -> None:
        """Leave the spool as it is for the next process."""
        self._journal.close()
        self.folder.lock.release()

    def _uncut(self) -> List[Extent]:
        progress = self._journal.state.progress
        return [extent for extent in self._source.extents() if extent.order >= progress.order]

    def _cut_one(self) -> Optional[Item]:
        for extent in self._uncut():
            view = self._view(extent)
            piece = next_piece(view.marks, self._limits, False)
            while piece is None and view.read(extent, _READ_BYTES):
                piece = next_piece(view.marks, self._limits, False)
            if piece is None and view.marks:
                flush = extent.sealed or (extent.order, view.marks[0].start) < self._flush_to
                piece = next_piece(view.marks, self._limits, flush)
            if piece is not None:
                return self._store(extent, view, piece)
            if not extent.sealed:
                return None
        self._forget_answered()
        return None

    def _store(self, extent: Extent, view: _View, piece: Piece) -> Item:
        if self._fsync:
            sync(extent.path)
        state = self._journal.state
        sequence = self._sequence() if piece.points else 0
        item = Item(
            state.progress.number,
            piece.kind,
            extent.order,
            piece.start,
            piece.stop,
            piece.points,
            self._new_id(),
            sequence,
        )
        self._journal.cut(item)
        view.drop_marks(piece.stop)
        return item

    def _view(self, extent: Extent) -> _View:
        view = self._views.get(extent.order)
        if view is None:
            progress = self._journal.state.progress
            cut_to = progress.offset if extent.order == progress.order else 0
            view = self._views[extent.order] = _View(extent, cut_to)
        return view

    def _view_of(self, item: Item) -> _View:
        for extent in self._source.extents():
            if extent.order == item.order:
                view = self._view(extent)
                while view.read_to < item.stop and view.read(extent, None):
                    pass
                return view
        raise FileNotFoundError(f"segment {item.order} of {self.folder.path} is missing")

    def _forget_answered(self) -> None:
        """Delete the segments of which nothing is left."""
        state = self._journal.state
        needed = {item.order for item in state.open.values()}
        for extent in self._source.extents():
            if extent.sealed and extent.order not in needed and self._is_cut(extent):
                self._source.forget(extent.order)
                self._views.pop(extent.order, None)

    def _is_cut(self, extent: Extent) -> bool:
        view = self._views.get(extent.order)
        if extent.order != self._journal.state.progress.order or view is None:
            return extent.order < self._journal.state.progress.order
        return view.read_to >= extent.end and not any(mark.kind != SHAPE for mark in view.marks)
