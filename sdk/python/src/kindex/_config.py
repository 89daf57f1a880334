"""The options: an argument wins over the environment, the environment over the default. Knows no other module."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional
from urllib.parse import urlsplit


def _text(value: str) -> str:
    return value


def _count(value: str) -> int:
    number = int(value)
    if number <= 0:
        raise ValueError("it must be above 0")
    return number


def _seconds(value: str) -> float:
    number = float(value)
    if not 0 < number < float("inf"):
        raise ValueError("it must be a number above 0")
    return number


def _wait_seconds(value: str) -> float:
    number = float(value)
    if not 0 <= number < float("inf"):
        raise ValueError("it must be 0 or more")
    return number


def _flag(value: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if value.lower() not in known:
        raise ValueError("it must be true or false")
    return known[value.lower()]


def _size(value: str) -> int:
    found = re.fullmatch(r"\s*(\d+)\s*(k|m|g)?(i?b)?\s*", value.lower())
    if not found or int(found[1]) == 0:
        raise ValueError("it must be a size such as 900000, 64MiB or 1GiB")
    return int(found[1]) << {None: 0, "k": 10, "m": 20, "g": 30}[found[2]]


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"it must be one of {', '.join(allowed)}")
        return value

    return read


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it must be a URL such as http://127.0.0.1:3002")
    return value.rstrip("/")


def _folder(value: str) -> str:
    return str(Path(value).expanduser().absolute())


def _option(default: Any, read: Callable[[str], Any], about: str) -> Any:
    return field(default=default, metadata={"read": read, "about": about})


@dataclass(frozen=True)
class Config:
    """All options. The environment variable of an option is `KINDEX_RUNS_` and its name in capitals."""

    url: str = _option("http://127.0.0.1:3002", _url, "REST address of the server")
    grpc: str = _option("", _text, "gRPC address, HOST:PORT; the host of `url` and port 50051 unless given")
    api_key: str = _option("", _text, "key that is sent with every request")
    dir: str = _option("~/.kindex/runs", _folder, "folder of the spool")
    mode: str = _option(
        "online", _one_of("online", "offline", "disabled"), "online, offline (spool only) or disabled (do nothing)"
    )
    transport: str = _option(
        "auto", _one_of("auto", "grpc", "rest"), "grpc, rest, or auto: gRPC where installed and reachable, else REST"
    )
    project: str = _option("", _text, "project of the run")
    run_id: str = _option("", _text, "id of the run; the same id after a restart continues the run")
    batch_points: int = _option(1_000, _count, "points that make a batch, at most 10,000")
    batch_bytes: int = _option(900_000, _size, "bytes that make a batch, at most 1,000,000")
    batch_seconds: float = _option(5.0, _seconds, "the longest time that a point waits to be sent")
    heartbeat_seconds: float = _option(30.0, _seconds, "pause between heartbeats")
    finish_seconds: float = _option(60.0, _wait_seconds, "how long `finish` waits for the server")
    request_seconds: float = _option(30.0, _seconds, "time limit of a request")
    connect_seconds: float = _option(5.0, _seconds, "time limit of a connection attempt")
    retry_seconds: float = _option(0.5, _seconds, "pause before the first retry, doubled for each further one")
    retry_seconds_max: float = _option(30.0, _seconds, "the longest pause between retries")
    spool_bytes: int = _option(1 << 30, _size, "the most that the spool of one process takes on disk")
    segment_bytes: int = _option(4 << 20, _size, "size of one file of the spool, at least 1 MiB")
    fsync: bool = _option(True, _flag, "sync a batch to disk before it is sent, against power loss")
    gzip_bytes: int = _option(1_000, _count, "REST bodies of this size and above are compressed")
    quiet: bool = _option(False, _flag, "print no progress at `finish`")


def environment_name(option: str) -> str:
    """The environment variable of an option."""
    return f"KINDEX_RUNS_{option.upper()}"


def load(arguments: Mapping[str, Any], environment: Optional[Mapping[str, str]] = None) -> Config:
    """The configuration from arguments and environment.

    Errors: `ValueError` that names every wrong option, where it comes from, and what is allowed.
    """
    environment = os.environ if environment is None else environment
    values: Dict[str, Any] = {}
    errors: List[str] = []
    for option in fields(Config):
        name = environment_name(option.name)
        read: Callable[[str], Any] = option.metadata["read"]
        source, given = "", None
        if arguments.get(option.name) is not None:
            source, given = f"argument {option.name}", arguments[option.name]
        elif environment.get(name):
            source, given = name, environment[name]
        text = str(option.default if given is None else given)
        try:
            values[option.name] = read(text)
        except ValueError as error:
            reason = str(error) if str(error).startswith("it must") else "it must be a number"
            errors.append(f"{source}={text!r}: {reason}")
    unknown = sorted(set(arguments) - set(values))
    errors.extend(f"there is no option {name}" for name in unknown)
    if errors:
        raise ValueError("kindex: " + "; ".join(errors))
    return Config(**values)


def grpc_target(config: Config) -> str:
    """HOST:PORT of the gRPC server."""
    if config.grpc:
        return config.grpc.split("://")[-1].rstrip("/")
    return f"{urlsplit(config.url).hostname}:50051"


def grpc_is_secure(config: Config) -> bool:
    """Whether gRPC goes over TLS: as the address says, otherwise as the REST address does."""
    scheme = config.grpc.split("://")[0] if "://" in config.grpc else urlsplit(config.url).scheme
    return scheme in ("https", "grpcs")
