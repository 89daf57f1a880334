"""What was cut from a spool and what became of it: the file that makes a batch id survive a crash.

Two files of fixed size are written in turn. Their space is allocated when the spool is made, so that a full disk
never stops the delivery that would free it. When one is full, what is still open is written to the other, whose
generation is one higher. Holds no points: an item says where in which segment they lie.
"""

from __future__ import annotations

import os
import struct
import uuid
from pathlib import Path
from typing import Dict, NamedTuple, Optional, Tuple

from ._frames import frame, scan
from ._segment import allocate

_MAGIC = b"KXJRNL01"
_HEADER = struct.Struct("<8sQ")
_CUT = struct.Struct("<BQBQQQI16sq")
_DONE = struct.Struct("<BQB")
_STATE = struct.Struct("<BQQQQQ")
_IS_CUT, _IS_DONE, _IS_STATE = 1, 2, 3
JOURNAL_BYTES = 1 << 16

DELIVERED = 1
SET_ASIDE = 2


class Item(NamedTuple):
    """A batch or an operation on its way: its number, its place in the spool, and its ids."""

    number: int
    kind: int
    order: int
    start: int
    stop: int
    points: int
    batch_id: uuid.UUID
    sequence: int


class Progress(NamedTuple):
    """Up to where the spool was cut, the next number, and the points that left it."""

    order: int = 0
    offset: int = 0
    number: int = 1
    delivered: int = 0
    set_aside: int = 0


class State:
    """What the records of a journal add up to. Pure."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.open: Dict[int, Item] = {}

    def cut(self, item: Item) -> None:
        self.open[item.number] = item
        self.progress = self.progress._replace(order=item.order, offset=item.stop, number=item.number + 1)

    def done(self, number: int, outcome: int) -> None:
        item = self.open.pop(number, None)
        if item is None:
            return
        if outcome == DELIVERED:
            self.progress = self.progress._replace(delivered=self.progress.delivered + item.points)
        else:
            self.progress = self.progress._replace(set_aside=self.progress.set_aside + item.points)

    def apply(self, payload: bytes) -> None:
        """One record. What is unknown is ignored."""
        if payload[0] == _IS_CUT and len(payload) == _CUT.size:
            _, number, kind, order, start, stop, points, batch_id, sequence = _CUT.unpack(payload)
            self.cut(Item(number, kind, order, start, stop, points, uuid.UUID(bytes=batch_id), sequence))
        elif payload[0] == _IS_DONE and len(payload) == _DONE.size:
            self.done(*_DONE.unpack(payload)[1:])
        elif payload[0] == _IS_STATE and len(payload) == _STATE.size:
            self.progress = Progress(*_STATE.unpack(payload)[1:])

    def snapshot(self) -> bytes:
        """The fewest records that add up to this state."""
        cuts = b"".join(frame(encode_cut(item)) for item in self.open.values())
        return cuts + frame(_STATE.pack(_IS_STATE, *self.progress))


def encode_cut(item: Item) -> bytes:
    fields = item._replace(batch_id=item.batch_id.bytes)  # type: ignore[arg-type]
    return _CUT.pack(_IS_CUT, *fields)


def encode_done(number: int, outcome: int) -> bytes:
    return _DONE.pack(_IS_DONE, number, outcome)


def read_state(data: bytes) -> Tuple[int, State]:
    """The generation and the state of a journal file; generation 0 for what is none."""
    state = State()
    if len(data) < _HEADER.size:
        return 0, state
    magic, generation = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        return 0, state
    for found in scan(data, _HEADER.size).frames:
        state.apply(found.payload)
    return generation, state


class Journal:
    """The journal of a spool folder, of which this process holds the lock."""

    def __init__(self, folder: Path, fsync: bool, size: int = JOURNAL_BYTES) -> None:
        self._paths = (folder / "journal.0", folder / "journal.1")
        self._fsync = fsync
        self._size = size
        read = [read_state(path.read_bytes()) if path.exists() else (0, State()) for path in self._paths]
        newest = 0 if read[0][0] >= read[1][0] else 1
        self._generation, self.state = read[newest]
        self._side = newest
        self._end = 0
        self._fds = [self._open(path) for path in self._paths]
        self._turn_over()

    @staticmethod
    def exists(folder: Path) -> bool:
        return (folder / "journal.0").exists()

    def cut(self, item: Item) -> None:
        """Store an item before it is sent. On disk when this returns, if syncing is on. Errors: `OSError`."""
        self._append(encode_cut(item), self._fsync)
        self.state.cut(item)

    def done(self, number: int, outcome: int) -> None:
        """Store the outcome of an item. Not synced: after a power loss it is sent again and deduplicated."""
        self._append(encode_done(number, outcome), False)
        self.state.done(number, outcome)

    def close(self) -> None:
        """Close the files. What comes later fails, and never meets a file that was given the same number."""
        fds, self._fds = self._fds, [-1, -1]
        for fd in fds:
            if fd >= 0:
                os.close(fd)

    def _open(self, path: Path) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if os.fstat(fd).st_size < self._size:
            allocate(fd, self._size)
        return fd

    def _append(self, payload: bytes, sync: bool) -> None:
        data = frame(payload)
        if self._end + len(data) > self._size:
            self._turn_over(len(data))
        os.pwrite(self._fds[self._side], data, self._end)
        self._end += len(data)
        if sync:
            _sync(self._fds[self._side])

    def _turn_over(self, room: int = 0) -> None:
        """Write the open items to the other file. It counts only when its header does, which is written last."""
        other = 1 - self._side
        fd = self._fds[other]
        body = self.state.snapshot()
        size = max(self._size, 2 * (_HEADER.size + len(body) + room))
        if size > os.fstat(fd).st_size:
            allocate(fd, size)
        os.pwrite(fd, bytes(_HEADER.size), 0)
        os.pwrite(fd, body + bytes(size - _HEADER.size - len(body)), _HEADER.size)
        if self._fsync:
            _sync(fd)
        os.pwrite(fd, _HEADER.pack(_MAGIC, self._generation + 1), 0)
        if self._fsync:
            _sync(fd)
        self._generation += 1
        self._side, self._size, self._end = other, size, _HEADER.size + len(body)


def _sync(fd: int) -> None:
    getattr(os, "fdatasync", os.fsync)(fd)


def read_journal(folder: Path) -> Optional[State]:
    """The state of a journal without a lock and without changing it; `None` where there is none."""
    paths = [path for path in (folder / "journal.0", folder / "journal.1") if path.exists()]
    read = [read_state(path.read_bytes()) for path in paths]
    return max(read, key=lambda found: found[0])[1] if read else None
