"""Processes that train, for tests that kill them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Set

from peer import until

Options = Dict[str, Any]
TRAINER = Path(__file__).with_name("trainer.py")


class Trainer:
    """A trainer process and the steps that it wrote down."""

    started: List["Trainer"] = []

    def __init__(self, options: Options, log: Path, first: int, count: int, *more: str) -> None:
        self.log = log
        self._said = log.with_name(f"{log.name}.stderr")
        arguments = [sys.executable, str(TRAINER), json.dumps(options), str(log), str(first), str(count), *more]
        with self._said.open("ab") as said:
            self.process = subprocess.Popen(arguments, stderr=said)
        Trainer.started.append(self)

    def begins(self, count: int) -> None:
        """Wait until its run has begun for the count-th time. What it said, and where it stands, if it does not."""
        try:
            until(lambda: self.lines().count("ready") >= count)
        except AssertionError as error:
            raise AssertionError(f"{self.log.name}: {self.process.poll()}: {self._said.read_text()}") from error

    def lines(self) -> List[str]:
        return self.log.read_text().split("\n")[:-1] if self.log.exists() else []

    def steps(self) -> Set[int]:
        return {int(line) for line in self.lines() if line != "ready"}

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
