"""The real server for the tests that ask no more than REST tells: `KINDEX_BIN` is the path of the binary."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any, Dict, List, Optional
from urllib.parse import quote

from peer import free_port

_WINDOW_STEPS = 5_000
_NAMED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def command(binary: str, data: Path, grpc_port: int, rest_port: int) -> List[str]:
    """How the server is started: the one place that knows its flags."""
    return [
        binary,
        "runs",
        "serve",
        "--data-dir",
        str(data),
        "--grpc-addr",
        f"127.0.0.1:{grpc_port}",
        "--rest-addr",
        f"127.0.0.1:{rest_port}",
        "--health-addr",
        "127.0.0.1:0",
    ]


class Real:
    """The server as a process. It keeps its data folder and its ports when it is stopped and started again."""

    def __init__(self, binary: str, data: Path) -> None:
        self._binary, self._data = binary, data
        self.rest_port, self.grpc_port = free_port(), free_port()
        self._process: Optional["subprocess.Popen[bytes]"] = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.rest_port}"

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.grpc_port}"

    def start(self) -> None:
        from peer import until

        self._data.mkdir(parents=True, exist_ok=True)
        log = open(self._data / "server.log", "ab")
        arguments = command(self._binary, self._data, self.grpc_port, self.rest_port)
        self._process = subprocess.Popen(arguments, stdout=log, stderr=log)
        until(self._is_healthy, 60)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def series(self, run_id: str, name: str) -> Dict[int, float]:
        """The values of a series by step, read in windows, so that none is a bucket. REST shows no infinity here."""
        found: Dict[int, float] = {}
        for start in range(0, 1_000_000, _WINDOW_STEPS):
            query = f"names={quote(name)}&max_points=10000&start_step={start}&end_step={start + _WINDOW_STEPS - 1}"
            answer = self._get(f"/api/v1/runs/{run_id}/metrics?{query}")
            points = [point for one in answer["series"] if one["name"] == name for point in one["points"]]
            if not points:
                break
            found.update((int(point["step"]), _number(point["min"])) for point in points)
        return found

    def status(self, run_id: str) -> str:
        try:
            return str(self._get(f"/api/v1/runs/{run_id}")["status"])
        except OSError:
            return "unknown"

    def params(self, run_id: str) -> Dict[str, str]:
        return dict(self._get(f"/api/v1/runs/{run_id}/params")["params"])

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _get(self, path: str) -> Dict[str, Any]:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            content = re.sub(rb"\bNaN\b(?!\")", b'"NaN"', answer.read())
        found = json.loads(content)
        assert isinstance(found, dict)
        return found


def _number(value: Any) -> float:
    return _NAMED[value] if isinstance(value, str) else float(value)


def binary() -> str:
    return os.environ.get("KINDEX_BIN", "")
