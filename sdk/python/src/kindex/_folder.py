"""The folder that all runs of a machine share: names, locks, and which spools nobody owns.

    spools/RUN--UUID/     spool of one process: run.json, lock, journals, segments
    runs/RUN.json         token and sequence of a run, shared by its processes
    rejected/RUN/ID.json  what the server refused for good

A process holds the lock of its spool as long as it lives. Who takes the lock of another's spool owns it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
import weakref
from pathlib import Path
from typing import Any, Dict, List, Optional

META = "run.json"
_LOCK = "lock"
_GONE = ".gone"


_held: "weakref.WeakSet[Lock]" = weakref.WeakSet()


def release_in_child() -> None:
    """In a forked child: every lock is the parent's, and must not outlive it because the child has its file open."""
    for lock in list(_held):
        lock.release()


class Lock:
    """An exclusive lock on a file, kept until it is released or the process dies."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        _held.add(self)

    @classmethod
    def take(cls, path: Path, wait: bool = False) -> Optional["Lock"]:
        """The lock, or `None` when another holds it. Errors: `OSError`."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def release(self) -> None:
        """Give the lock up. In a forked child the parent keeps it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def write_private(path: Path, body: Dict[str, Any], sync: bool = True) -> None:
    """Replace a JSON file that only its owner can read, in one step."""
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            json.dump(body, file, indent=1)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink()
        raise


def read_json(path: Path) -> Dict[str, Any]:
    """A JSON object, or an empty one where the file is missing or broken."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


class SpoolFolder:
    """The folder of one spool, locked by this process."""

    def __init__(self, path: Path, lock: Lock, meta: Dict[str, Any]) -> None:
        self.path = path
        self.lock = lock
        self.meta = meta

    @property
    def run_id(self) -> str:
        return str(self.meta["run_id"])

    def remove(self) -> None:
        """Delete the folder: all of it is answered.

        It goes in one step: nobody may take it over while its files vanish, and find a lock or a journal missing.
        """
        gone = self.path.with_name(f".{self.path.name.rsplit('--', 1)[1]}{_GONE}")
        try:
            self.path.rename(gone)
        except OSError:
            gone = self.path
        shutil.rmtree(gone, ignore_errors=True)
        self.lock.release()


def create(root: Path, meta: Dict[str, Any], unique: str) -> SpoolFolder:
    """A new spool folder, locked. It shows only when it is complete. Errors: `OSError`."""
    spools = root / "spools"
    spools.mkdir(parents=True, exist_ok=True, mode=0o700)
    for gone in spools.glob(f".*{_GONE}"):
        # Its process died while it deleted the folder.
        shutil.rmtree(gone, ignore_errors=True)
    hidden = spools / f".{unique}"
    hidden.mkdir(mode=0o700)
    lock = Lock.take(hidden / _LOCK)
    if lock is None:
        raise OSError(f"{hidden} was just made, yet it is locked")
    write_private(hidden / META, meta)
    path = spools / f"{meta['run_id']}--{unique}"
    hidden.rename(path)
    return SpoolFolder(path, lock, meta)


def listed(root: Path) -> List[Path]:
    """All spool folders, oldest first: their names end with a UUID of version 7."""
    spools = root / "spools"
    found = [path for path in spools.glob("*--*") if (path / META).exists()] if spools.is_dir() else []
    return sorted(found, key=lambda path: path.name.rsplit("--", 1)[1])


def adopt(path: Path) -> Optional[SpoolFolder]:
    """Take a spool over, or `None` when its process lives or somebody else took it."""
    try:
        lock = Lock.take(path / _LOCK)
    except OSError:
        return None
    if lock is None:
        return None
    meta = read_json(path / META)
    if not meta.get("run_id"):
        lock.release()
        return None
    return SpoolFolder(path, lock, meta)


def move_to_run(folder: SpoolFolder, run_id: str) -> SpoolFolder:
    """Make a spool one of another run, whose parent is the run that it was of. The lock is kept. Errors: `OSError`."""
    path = folder.path.with_name(f"{run_id}--{folder.path.name.rsplit('--', 1)[1]}")
    meta = {**folder.meta, "run_id": run_id, "parent_run_id": folder.run_id}
    folder.path.rename(path)
    write_private(path / META, meta)
    return SpoolFolder(path, folder.lock, meta)


def is_live(path: Path) -> bool:
    """Whether a process holds the lock of a spool. It is not touched."""
    try:
        fd = os.open(path / _LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def adopt_run(root: Path, run_id: str) -> List[SpoolFolder]:
    """All spools of the run that nobody owns, oldest first."""
    of_run = [path for path in listed(root) if path.name.rsplit("--", 1)[0] == run_id]
    return [found for found in map(adopt, of_run) if found is not None]
