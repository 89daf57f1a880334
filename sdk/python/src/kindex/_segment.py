"""One file of the spool: allocated in full before it is used, written through memory. Knows nothing of records.

The blocks are allocated first, so that a write through memory finds its place on disk even when the disk has
filled up since. Pages that were written live on in the kernel when the process is killed.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from pathlib import Path
from typing import List, NamedTuple, Optional

from ._frames import HEAD, HEAD_BYTES, scan

MAGIC = b"KXSPOOL1"
_ORDER = struct.Struct("<Q")
#: Magic, then the place of the segment in the order of use; 0 for one that is not used yet.
START = len(MAGIC) + _ORDER.size
SEGMENT_BYTES_MIN = 1 << 20


def allocate(fd: int, size: int) -> None:
    """Give the file `size` bytes of its own on the disk; `OSError` when there is no room."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
        return
    block = bytes(1 << 16)
    for at in range(0, size, len(block)):
        os.pwrite(fd, block[: size - at], at)
    os.fsync(fd)


class Segment:
    """A segment that is being written."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size
        self.end = START
        self.order = 0
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            allocate(fd, size)
            self._map = mmap.mmap(fd, size)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        self._map[: len(MAGIC)] = MAGIC
        for page in range(mmap.PAGESIZE, size, mmap.PAGESIZE):
            self._map[page] = 0

    def begin(self, order: int) -> None:
        """Take the segment into use."""
        self.order = order
        _ORDER.pack_into(self._map, len(MAGIC), order)

    def append(self, payload: bytes) -> bool:
        """Write a frame; False when it does not fit. The caller sees to it that no two threads are here at once."""
        at = self.end
        body = at + HEAD_BYTES
        stop = body + len(payload)
        if stop > self.size:
            return False
        self._map[body:stop] = payload
        HEAD.pack_into(self._map, at, len(payload), zlib.crc32(payload))
        self.end = stop
        return True

    def close(self) -> None:
        """Unmap the file. What was written stays."""
        self._map.close()


class Extent(NamedTuple):
    """A segment as a reader sees it: complete frames up to `end`; no more will come when it is sealed."""

    order: int
    path: Path
    end: int
    sealed: bool


def read_extent(path: Path) -> Optional[Extent]:
    """What is in a segment that nobody writes; `None` for one that was never used or is no segment."""
    data = path.read_bytes()
    if len(data) < START or data[: len(MAGIC)] != MAGIC:
        return None
    (order,) = _ORDER.unpack_from(data, len(MAGIC))
    return Extent(order, path, scan(data, START).end, True) if order else None


def read_extents(folder: Path) -> List[Extent]:
    """The used segments of a folder that nobody writes, in their order."""
    found = [read_extent(path) for path in sorted(folder.glob("*.seg"))]
    return sorted(extent for extent in found if extent is not None)


def sync(path: Path) -> None:
    """Wait until what was written to the file, through memory too, is on disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        getattr(os, "fdatasync", os.fsync)(fd)
    finally:
        os.close(fd)
