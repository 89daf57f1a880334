"""Disks on which nothing can be written, for real: mounted in a name space of the trainer's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest

_TRAINER = """
import json, os, subprocess, sys
import kindex
folder, way = sys.argv[1:]
if way == "before":
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
run = kindex.init(project="tests", dir=folder + "/spool", mode="offline", quiet=True)
for step in range(1_000):
    run.log({"a": step}, step=step)
if way == "while":
    # What was written is on the disk, so that every page has to be asked for again.
    os.sync()
    subprocess.run(["mount", "-o", "remount,abort", folder], check=True)
for step in range(1_000, 5_000):
    run.log({"a": step}, step=step)
run.log_params({"lr": 0.1})
print(json.dumps(run.finish(timeout=1)._asdict()))
"""


def trained(tmp_path: Path, way: str) -> "subprocess.CompletedProcess[str]":
    """A trainer on a disk in a file, which can be written no longer before or while it logs."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mkfs.ext4", "-q", str(image), "64m"], stderr=subprocess.DEVNULL)
    script = 'mount -o loop "$0" "$1" && shift && exec "$@"'
    trainer = [sys.executable, "-c", _TRAINER, str(folder), way]
    command = ["unshare", "-m", "sh", "-c", script, str(image), str(folder), *trainer]
    assert made.returncode == 0
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=120)


@pytest.fixture(autouse=True)
def mounts(tmp_path: Path) -> None:
    """A disk in a file, where one may be mounted."""
    image = tmp_path / "probe"
    script = 'mkfs.ext4 -q "$0" 4m && unshare -m mount -o loop "$0" /mnt'
    if subprocess.run(["sh", "-c", script, str(image)], stderr=subprocess.DEVNULL).returncode:
        assert "mount" not in os.environ.get("KINDEX_REQUIRE", "").split(","), "no disk can be mounted"
        pytest.skip("no disk can be mounted")


def test_a_training_on_a_read_only_disk_goes_on_without_its_data(tmp_path: Path) -> None:
    ended = trained(tmp_path, "before")
    assert ended.returncode == 0, ended.stderr
    assert "nothing is logged" in ended.stderr and str(tmp_path / "disk") in ended.stderr


def test_a_training_whose_disk_fails_goes_on_and_counts_honestly(tmp_path: Path) -> None:
    ended = trained(tmp_path, "while")
    assert ended.returncode == 0, ended.stderr
    report: Dict[str, Any] = json.loads(ended.stdout)
    assert report["points_left"] + report["points_dropped"] == 5_000 and not report["complete"], report
