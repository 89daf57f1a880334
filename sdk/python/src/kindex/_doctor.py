"""Finds out why nothing arrives: the folder, the server, the key. Changes nothing on the server."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import List, NamedTuple

from ._classify import Refusal
from ._config import Config, environment_name, grpc_target
from ._grpc import Grpc, is_installed
from ._protocol import Transport
from ._rest import Rest

_NO_RUN = "kindex-doctor"


class Finding(NamedTuple):
    """One thing that was checked."""

    is_good: bool
    what: str
    remedy: str = ""


def examine(config: Config) -> List[Finding]:
    """Check everything that a run needs."""
    findings = [_mode(config), _folder(config), _server("REST", config.url, Rest(config))]
    if not is_installed():
        findings.append(Finding(config.transport != "grpc", "gRPC is not installed", "pip install 'kindex[grpc]'"))
    elif config.transport != "rest":
        found = _server("gRPC", grpc_target(config), Grpc(config))
        if not found.is_good and config.transport == "auto" and findings[-1].is_good:
            found = Finding(True, f"{found.what}; REST is used")
        findings.append(found)
    return findings


def _mode(config: Config) -> Finding:
    name = environment_name("mode")
    if config.mode == "online":
        return Finding(True, "mode online")
    return Finding(False, f"mode {config.mode}: nothing is sent", f"unset {name}, or set it to online")


def _folder(config: Config) -> Finding:
    name = environment_name("dir")
    try:
        Path(config.dir).mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=config.dir):
            room = os.statvfs(config.dir)
    except OSError as error:
        return Finding(False, f"folder {config.dir}: {error.strerror}", f"choose another one with {name}")
    free = room.f_bavail * room.f_frsize
    if free < 4 * config.segment_bytes:
        return Finding(False, f"folder {config.dir}: {free >> 20} MiB free", f"make room, or set {name}")
    return Finding(True, f"folder {config.dir} is writable, {free >> 20} MiB free")


def _server(protocol: str, address: str, transport: Transport) -> Finding:
    """Ask for the heartbeat of a run that does not exist: a server that knows the key answers NOT_FOUND."""
    try:
        transport.heartbeat(_NO_RUN)
    except Refusal as refusal:
        return _judge(protocol, address, refusal)
    finally:
        transport.close()
    return Finding(True, f"{protocol} server at {address} answers")


def _judge(protocol: str, address: str, refusal: Refusal) -> Finding:
    key = environment_name("api_key")
    if refusal.code == "NOT_FOUND":
        return Finding(True, f"{protocol} server at {address} answers and takes the key")
    if refusal.code == "UNAUTHENTICATED":
        return Finding(False, f"{protocol} server at {address} refuses the key: {refusal.message}", f"set {key}")
    if refusal.code == "PERMISSION_DENIED":
        remedy = f"the key in {key} needs the scope ingest, and this host must be allowed"
        return Finding(False, f"{protocol} server at {address}: {refusal.message}", remedy)
    remedy = "is the server running (kindex up), and is the address right?"
    return Finding(False, f"{protocol} server at {address}: {refusal}", remedy)
