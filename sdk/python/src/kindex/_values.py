"""Checks what users hand in: names, steps, times, texts. Pure; every problem is returned as a sentence, none raised."""

from __future__ import annotations

import datetime
import numbers
import operator
import re
from typing import Any, Dict, List, Mapping, Optional, Tuple

METRIC_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._/-]{0,255}")
TAG_KEY = re.compile(r"[A-Za-z0-9._-]{1,128}")
RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
PROJECT = re.compile(r"[a-z][a-z0-9_-]{0,127}")
PARAM_BYTES_MAX = 4096
TAG_BYTES_MAX = 1024
_STEP_MAX = (1 << 63) - 2
_TIME_US_MIN = -62_135_596_800_000_000
_TIME_US_MAX = 253_402_300_799_999_999


def project_error(project: str) -> str:
    """What is wrong with a project name, or an empty text."""
    if not project:
        return "a run needs a project: kindex.init(project=...) or KINDEX_RUNS_PROJECT"
    if not PROJECT.fullmatch(project) or project.startswith(("mlrun-", "system-")):
        return (
            f"project {project!r}: up to 128 of a-z, 0-9, _ and -, beginning with a letter and "
            "not with mlrun- or system-"
        )
    return ""


def run_id_error(run_id: str) -> str:
    if not RUN_ID.fullmatch(run_id):
        return f"run_id {run_id!r}: 1 to 64 of A-Z, a-z, 0-9, _ and -"
    return ""


def names_error(names: Tuple[Any, ...]) -> str:
    """The first wrong metric name, explained, or an empty text."""
    for name in names:
        if not isinstance(name, str) or not METRIC_NAME.fullmatch(name):
            shown = repr(name)[:100]
            return f"metric name {shown}: up to 256 of A-Z, a-z, 0-9, . _ / and -, beginning with a letter"
    return ""


def step_of(step: Any) -> Tuple[int, str]:
    """The step as an integer, and what is wrong with it."""
    try:
        number = operator.index(step)
    except TypeError:
        if not (isinstance(step, numbers.Real) and float(step).is_integer()):
            return 0, f"step {step!r} is not a whole number"
        number = int(float(step))
    if not 0 <= number <= _STEP_MAX:
        return 0, f"step {number} is not between 0 and {_STEP_MAX}"
    return number, ""


def time_us_of(timestamp: Any, now_us: int) -> Tuple[int, str]:
    """The time in microseconds since 1970; now, and a reason, for one that no calendar has."""
    if isinstance(timestamp, datetime.datetime):
        timestamp = timestamp.timestamp()
    try:
        time_us = int(round(float(timestamp) * 1_000_000))
    except (TypeError, ValueError, OverflowError):
        return now_us, f"timestamp {timestamp!r} is not a number of seconds since 1970: the current time is used"
    if not _TIME_US_MIN <= time_us <= _TIME_US_MAX:
        return now_us, f"timestamp {timestamp!r} is outside of the years 1 to 9999: the current time is used"
    return time_us, ""


def value_of(name: Any, value: Any) -> Tuple[Optional[float], str]:
    """The value as a float, or `None` and the reason."""
    if isinstance(value, (str, bytes)) or value is None:
        return None, f"metric {name!r}: {value!r:.60} is not a number"
    try:
        return float(value), ""
    except Exception as error:  # noqa: BLE001 - a value's own __float__ may raise anything
        return None, f"metric {name!r}: a {type(value).__name__} is not a number: {error}"


def flatten(config: Mapping[Any, Any], prefix: str = "") -> Dict[str, Any]:
    """Nested parameters as one level: `{"optimizer": {"lr": 1}}` is `optimizer.lr`."""
    found: Dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found.update(flatten(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = value
    return found


def params_of(params: Mapping[Any, Any]) -> Tuple[Dict[str, str], List[str]]:
    """Parameters as texts, and what was left out and why."""
    good: Dict[str, str] = {}
    problems: List[str] = []
    for name, value in flatten(params).items():
        text = _text(value)
        if not METRIC_NAME.fullmatch(name):
            problems.append(f"parameter name {name!r}: up to 256 of A-Z, a-z, 0-9, . _ / and -, a letter first")
        elif len(text.encode("utf-8", "replace")) > PARAM_BYTES_MAX:
            problems.append(f"parameter {name!r}: its value has more than {PARAM_BYTES_MAX} bytes")
        else:
            good[name] = text
    return good, problems


def tags_of(tags: Mapping[Any, Any]) -> Tuple[Dict[str, str], List[str]]:
    """Tags as texts, and what was left out and why."""
    good: Dict[str, str] = {}
    problems: List[str] = []
    for key, value in tags.items():
        text = _text(value)
        if not isinstance(key, str) or not TAG_KEY.fullmatch(key) or key.startswith("mlrun."):
            problems.append(f"tag key {key!r}: 1 to 128 of A-Z, a-z, 0-9, . _ and -, not beginning with mlrun.")
        elif len(text.encode("utf-8", "replace")) > TAG_BYTES_MAX:
            problems.append(f"tag {key!r}: its value has more than {TAG_BYTES_MAX} bytes")
        else:
            good[key] = text
    return good, problems


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
