"""The writing side of the spool: `points` and `operation` put a record into memory-mapped segments and return.

No call here waits for a network or for a sync, and no lock is held while a file is made. A thread of its own keeps
the next segment ready; a writer that overtakes it makes one itself. When the cap is reached or the disk is full,
the newest records are dropped and counted, and writing goes on as soon as there is room again.
"""

from __future__ import annotations

import itertools
import struct
import threading
from collections import deque
from pathlib import Path
from typing import Callable, Deque, Dict, List, Optional, Tuple

from ._records import encode_points, encode_shape, wire_bytes
from ._segment import SEGMENT_BYTES_MIN, Extent, Segment

#: Points of one record. A call with more names makes several records.
RECORD_POINTS_MAX = 500
_ROOM_RETRY_S = 1.0
#: How long a writer waits for the last segment that there is room for, while another thread makes it.
_MADE_WAIT_S = 0.05
_INT64_MAX = (1 << 63) - 1

_Shape = Tuple[int, int, int]
_Write = Callable[[], bool]


class Spool:
    """The spool of one process for one run."""

    def __init__(
        self,
        folder: Path,
        segment_bytes: int,
        bytes_max: int,
        wake_points: int,
        wake_bytes: int,
        wake: Callable[[], None],
        on_drop: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._segment_bytes = max(segment_bytes, SEGMENT_BYTES_MIN)
        self._bytes_max = max(bytes_max, self._segment_bytes)
        self._wake_points, self._wake_bytes = wake_points, wake_bytes
        self._wake, self._on_drop = wake, on_drop
        self._lock = threading.RLock()
        self._room_lock = threading.Lock()
        self._busy = False
        self._deferred: Deque[_Write] = deque()
        self._names = itertools.count(1)
        self._orders = itertools.count(1)
        self._bytes = 0
        self._reserve: Deque[Segment] = deque()
        self._full: Deque[Segment] = deque()
        self._sealed: List[Extent] = []
        self._current: Optional[Segment] = None
        self._shapes: Dict[Tuple[str, ...], _Shape] = {}
        self._fresh_points = self._fresh_wire = 0
        self._half = 0
        self._closed = False
        self.next_step = 0
        self.points_total = 0
        self.points_dropped = 0
        self.operations_dropped = 0
        self._need_room = threading.Event()
        self._is_making = False
        self._made = threading.Event()
        self._make_room()
        self._keeper = threading.Thread(target=self._keep, name="kindex-spool", daemon=True)
        self._keeper.start()

    def points(self, names: Tuple[str, ...], step: Optional[int], time_us: int, values: bytes) -> bool:
        """Store one value for each name. Without a step it is the one after the highest so far. False: dropped."""
        # The usual case, without the detours of `_write`: nobody else writes, and there is room.
        with self._lock:
            if not (self._busy or self._closed):
                self._busy = True
                try:
                    done = self._put_points(names, step, time_us, values)
                finally:
                    self._busy = False
                # From here on a signal handler writes its own: what was deferred before is all there is.
                if done and not self._deferred:
                    return True
                if done:
                    return self._write(lambda: True, 0)
        return self._write(lambda: self._put_points(names, step, time_us, values), len(names))

    def operation(self, payload: bytes) -> bool:
        """Store an operation. False: dropped."""
        if len(payload) > SEGMENT_BYTES_MIN // 2:
            self._drop(0, f"an operation of {len(payload)} bytes is too large for the spool")
            return False
        return self._write(lambda: self._put(payload), 0)

    def extents(self) -> List[Extent]:
        """The segments with what they hold now, in order."""
        with self._lock:
            found = list(self._sealed)
            if self._current is not None:
                current = self._current
                found.append(Extent(current.order, current.path, current.end, self._closed))
            return found

    def forget(self, order: int) -> None:
        """Delete a sealed segment: all of it is answered."""
        with self._lock:
            gone = [extent for extent in self._sealed if extent.order == order]
            self._sealed = [extent for extent in self._sealed if extent.order != order]
        for extent in gone:
            extent.path.unlink(missing_ok=True)
            with self._room_lock:
                self._bytes -= self._segment_bytes
        self._need_room.set()

    def close(self) -> None:
        """Stop writing; further records are dropped and counted. What was written stays."""
        with self._lock:
            self._closed = True
        self._need_room.set()
        self._keeper.join()
        self._unmap_full()
        for segment in self._reserve:
            segment.close()
            segment.path.unlink(missing_ok=True)
        self._reserve.clear()

    def _write(self, put: _Write, points: int) -> bool:
        while True:
            with self._lock:
                if self._closed:
                    break
                if self._busy:
                    # A signal handler interrupted a write of its own thread: that write stores this one too.
                    self._deferred.append(put)
                    return True
                self._busy = True
                try:
                    done = put()
                    while done and self._deferred:
                        if self._deferred[0]():
                            self._deferred.popleft()
                        elif not self._next_segment():
                            break
                    if done or self._next_segment():
                        if done:
                            return True
                        continue
                finally:
                    self._busy = False
            if not self._make_room():
                if self._is_making:
                    self._made.wait(_MADE_WAIT_S)
                if not self._reserve:
                    break
        self._drop(points)
        return False

    def _put_points(self, names: Tuple[str, ...], step: Optional[int], time_us: int, values: bytes) -> bool:
        current = self._current
        if current is None:
            return False
        if step is None:
            step = min(self.next_step, _INT64_MAX)
        shape = self._shapes.get(names)
        if shape is None:
            shape = (len(self._shapes) + 1, len(names), wire_bytes(names))
            if not current.append(encode_shape(shape[0], names)):
                return False
            self._shapes[names] = shape
        if not current.append(encode_points(shape[0], step, time_us, values)):
            return False
        if step >= self.next_step:
            self.next_step = step + 1
        self.points_total += shape[1]
        self._fresh_points += shape[1]
        self._fresh_wire += shape[2]
        if self._fresh_points >= self._wake_points or self._fresh_wire >= self._wake_bytes:
            self._fresh_points = self._fresh_wire = 0
            self._wake()
        if current.end > self._half:
            self._half = self._segment_bytes
            self._need_room.set()
        return True

    def _put(self, payload: bytes) -> bool:
        return self._current is not None and self._current.append(payload)

    def _next_segment(self) -> bool:
        """Go on in a reserved segment. Memory alone: a file is neither made nor closed here."""
        if not self._reserve:
            return False
        if self._current is not None:
            full = self._current
            self._sealed.append(Extent(full.order, full.path, full.end, True))
            # To unmap it takes long: another thread does so.
            self._full.append(full)
        self._current = self._reserve.popleft()
        self._current.begin(next(self._orders))
        self._shapes = {}
        self._half = self._segment_bytes // 2
        return True

    def _make_room(self) -> bool:
        with self._room_lock:
            if self._bytes + self._segment_bytes > self._bytes_max:
                return False
            self._bytes += self._segment_bytes
        try:
            segment = Segment(self._folder / f"{next(self._names):08}.seg", self._segment_bytes)
        except OSError:
            with self._room_lock:
                self._bytes -= self._segment_bytes
            return False
        self._reserve.append(segment)
        return True

    def _drop(self, points: int, reason: str = "") -> None:
        with self._lock:
            self.points_dropped += points
            self.operations_dropped += not points
        where = "the run has ended" if self._closed else f"there is no room for the spool in {self._folder}"
        self._on_drop(reason or where)

    def _keep(self) -> None:
        lacking = False
        while not self._closed:
            self._need_room.wait(_ROOM_RETRY_S if lacking else None)
            self._need_room.clear()
            self._unmap_full()
            if not self._closed and not self._reserve:
                self._made.clear()
                self._is_making = True
                lacking = not self._make_room()
                self._is_making = False
                self._made.set()


    def _unmap_full(self) -> None:
        while self._full:
            self._full.popleft().close()


#: Makes bytes of values.
Pack = Callable[..., bytes]


def packer(count: int) -> Pack:
    """What makes bytes of so many values, each to the bit. It raises `struct.error` or what a `__float__` does."""
    return struct.Struct(f"<{count}d").pack
