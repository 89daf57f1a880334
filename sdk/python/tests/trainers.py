"""Processes that train, for tests that kill them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Set

Options = Dict[str, Any]
TRAINER = Path(__file__).with_name("trainer.py")


class Trainer:
    """A trainer process and the steps that it wrote down."""

    started: List["Trainer"] = []

    def __init__(self, options: Options, log: Path, first: int, count: int, *more: str) -> None:
        self.log = log
        arguments = [sys.executable, str(TRAINER), json.dumps(options), str(log), str(first), str(count), *more]
        self.process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
        Trainer.started.append(self)

    def lines(self) -> List[str]:
        return self.log.read_text().split("\n")[:-1] if self.log.exists() else []

    def steps(self) -> Set[int]:
        return {int(line) for line in self.lines() if line != "ready"}

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
