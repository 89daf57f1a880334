"""InitRun: makes the server know the run, again after a crash, and keeps the resume token. Knows nothing of batches."""

from __future__ import annotations

import os
import platform
import socket
import threading
import time
from typing import Any, Callable, Dict

from ._classify import Refusal, Registration, classify_registration
from ._protocol import InitRun, SystemInfo, Transport
from ._runfile import RunFile
from ._warn import Warner

TOKEN_AGE_MAX_S = 24 * 3600.0


def system_info() -> SystemInfo:
    """What is told about the machine."""
    memory = 0
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    system = f"{platform.system()} {platform.release()}"
    return SystemInfo(socket.gethostname(), system, platform.python_version(), os.cpu_count() or 0, memory)


class Registrar:
    """Registers one run, for all its spools."""

    def __init__(
        self,
        meta: Dict[str, Any],
        runfile: RunFile,
        warner: Warner,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._meta = meta
        self._runfile = runfile
        self._warner = warner
        self._wall_clock = wall_clock
        # Held while InitRun is under way: by the sender, the uploader and the heartbeat, never by `log`.
        self._lock = threading.Lock()
        self.is_registered = False
        self.has_ended = False
        #: Whether the server no longer lets the run be resumed with the token that is stored here.
        self.is_lost = False
        self._was_answered = False

    def register(self, transport: Transport) -> None:
        """Send InitRun unless it was answered. Errors: `Refusal`, which `classify_registration` explains."""
        with self._lock:
            if not self.is_registered:
                self._init(transport)

    def again(self) -> None:
        """The server has lost the run or calls it crashed: register before the next request."""
        self.is_registered = False

    def refresh_token(self, transport: Transport) -> None:
        """Fetch a new token when the stored one is a day old. Errors: `Refusal`."""
        due = self._runfile.token_age_s(self._wall_clock()) >= TOKEN_AGE_MAX_S
        with self._lock:
            if self.is_registered and not self.has_ended and due:
                self._init(transport)

    def _init(self, transport: Transport) -> None:
        token = self._runfile.token()
        try:
            self._ask(transport, token)
        except Refusal as refusal:
            follows = classify_registration(refusal, bool(token))
            self.is_lost = follows is Registration.LOST
            if follows is Registration.ENDED:
                self.is_registered = self.has_ended = True
                self._warner("ended", f"run {self._meta['run_id']} has ended on the server: {refusal}")
                return
            if follows is not Registration.WITHOUT_TOKEN:
                raise
            self._runfile.forget_token()
            self._ask(transport, "")

    def _ask(self, transport: Transport, token: str) -> None:
        meta = self._meta
        answer = transport.init_run(
            InitRun(
                project=str(meta.get("project", "")),
                run_id=str(meta["run_id"]),
                name=str(meta.get("name") or ""),
                description=str(meta.get("description") or ""),
                tags=dict(meta.get("tags") or {}),
                parent_run_id=str(meta.get("parent_run_id") or ""),
                resume_token=token,
                system=system_info(),
            )
        )
        known = self._runfile.is_registered()
        if answer.resumed and not known:
            # Somebody else made the run, with a sequence of its own.
            self._runfile.set_unordered()
        if answer.resume_token:
            self._runfile.store_token(answer.resume_token, self._wall_clock())
        self._runfile.set_registered()
        self.is_registered = True
        self.is_lost = False
        # Tags that were changed since differ from those of `init`, which are sent each time.
        expected = {"RUN_ALREADY_ACTIVE": known, "RUN_ATTRIBUTE_KEPT": self._was_answered}
        self._was_answered = True
        for warning in answer.warnings:
            if not expected.get(warning.code):
                self._warner(warning.code or warning.message, f"server: {warning.code} {warning.message}")
