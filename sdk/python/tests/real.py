"""The real server for the tests: `KINDEX_BIN` is the path of the binary. What is stored is read over REST."""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
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

        def is_up() -> bool:
            # A connection of a client that tries again may have the port for a moment: then the server ends at once.
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(arguments, stdout=log, stderr=log)
            return self._is_healthy()

        until(is_up, 60)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def series(self, run_id: str, name: str) -> Dict[int, float]:
        """The values of a series by step, read in windows, so that each has a bucket of its own."""
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

    def shown(self, run_id: str) -> Dict[str, Any]:
        """A run as REST shows it."""
        return self._get(f"/api/v1/runs/{run_id}")

    def artifacts(self, run_id: str) -> Dict[str, bytes]:
        """The contents of the artifacts of a run by name."""
        found = {}
        for artifact in self._get(f"/api/v1/runs/{run_id}/artifacts")["artifacts"]:
            name = artifact["name"]
            url = self._get(f"/api/v1/runs/{run_id}/artifacts/{quote(name, safe='')}/url")["presigned_url"]
            with urllib.request.urlopen(url, timeout=60) as answer:
                found[name] = answer.read()
        return found

    def crash(self, run_id: str) -> None:
        """Five silent minutes pass for a run, while the server is stopped."""
        self.stop()
        with sqlite3.connect(self._database()) as database:
            changed = database.execute("UPDATE run SET status = 4 WHERE run_id = ? AND status = 1", (run_id,))
            assert changed.rowcount == 1
        self.start()

    def key(self, scopes: str) -> str:
        """A new API key."""
        arguments = ["key", "create", "--user", "tests", "--scopes", scopes, "--data-dir", str(self._data)]
        made = subprocess.run([self._binary, "runs", *arguments], stdout=subprocess.PIPE, check=True)
        return made.stdout.decode().strip()

    def command(self, arguments: List[str]) -> int:
        """The exit code of a command of the binary."""
        return subprocess.run([self._binary, *arguments], stdout=subprocess.DEVNULL).returncode

    def log(self) -> str:
        """What the server wrote."""
        return (self._data / "server.log").read_text()

    def verify(self) -> None:
        """Ledger, chunks and counters agree."""
        subprocess.run([self._binary, "runs", "verify", "--data-dir", str(self._data)], check=True)

    def _database(self) -> Path:
        (found,) = [path for path in self._data.glob("*.db") if path.name != "keys.db"]
        return found

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _get(self, path: str) -> Dict[str, Any]:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            found = json.loads(answer.read())
        assert isinstance(found, dict)
        return found


def _number(value: Any) -> float:
    return _NAMED[value] if isinstance(value, str) else float(value)


def binary() -> str:
    return os.environ.get("KINDEX_BIN", "")
