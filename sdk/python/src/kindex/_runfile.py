"""What the processes of a run on one machine share: the resume token (mode 0600) and the sequence of batches."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, Dict

from ._folder import Lock, read_json, write_private


class RunFile:
    """The file of a run. Where it cannot be written, its values live in memory until it can."""

    def __init__(self, root: Path, run_id: str, on_error: Callable[[str], None]) -> None:
        self.path = root / "runs" / f"{run_id}.json"
        self._lock_path = self.path.with_suffix(".lock")
        self._on_error = on_error
        self._values: Dict[str, Any] = {}
        self._unsaved = False

    def token(self) -> str:
        """The newest resume token, or an empty text."""
        return str(self._read().get("resume_token", ""))

    def token_age_s(self, now_s: float) -> float:
        """How long ago the token was stored."""
        return now_s - float(self._read().get("token_stored_at", 0.0))

    def store_token(self, token: str, now_s: float) -> None:
        self._change(lambda values: values.update(resume_token=token, token_stored_at=now_s))

    def forget_token(self) -> None:
        self._change(lambda values: values.pop("resume_token", None))

    def next_sequence(self) -> int:
        """The number of the next batch of the run: 1, 2, 3 and so on over all its processes here."""
        self._change(lambda values: values.update(sequence=int(values.get("sequence", 0)) + 1), sync=False)
        return int(self._values["sequence"])

    def is_ordered(self) -> bool:
        """Whether batches carry their sequence: not when it has a gap or another machine counts too."""
        return bool(self._read().get("ordered", True))

    def set_unordered(self) -> None:
        if self.is_ordered():
            self._change(lambda values: values.update(ordered=False))

    def is_registered(self) -> bool:
        """Whether the server has answered InitRun of this run."""
        return bool(self._read().get("registered", False))

    def set_registered(self) -> None:
        if not self.is_registered():
            self._change(lambda values: values.update(registered=True))

    def remove(self) -> None:
        """The run has ended, all is delivered."""
        for path in (self.path, self._lock_path):
            try:
                path.unlink()
            except OSError:
                continue

    def _read(self) -> Dict[str, Any]:
        stored = read_json(self.path)
        if self._unsaved:
            stored.update(self._values)
        elif int(self._values.get("sequence", 0)) > int(stored.get("sequence", 0)):
            stored["sequence"] = self._values["sequence"]
        self._values = stored
        return self._values

    def _change(self, change: Callable[[Dict[str, Any]], Any], sync: bool = True) -> None:
        changed = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with Lock.take(self._lock_path, wait=True) or nullcontext():
                change(self._read())
                changed = True
                write_private(self.path, self._values, sync)
                self._unsaved = False
        except OSError as error:
            if not changed:
                change(self._values)
            self._unsaved = True
            self._on_error(f"cannot store the state of the run in {self.path}: {error}")
