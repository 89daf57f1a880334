"""A training process for the tests: logs steps and writes each one down after `log` has returned.

    trainer.py OPTIONS.json ACKNOWLEDGED FIRST COUNT [--forever]
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time

import kindex


def main() -> None:
    options = json.loads(sys.argv[1])
    first, count = int(sys.argv[3]), int(sys.argv[4])
    acknowledged = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    faulthandler.dump_traceback_later(30)
    run = kindex.init(**options)
    faulthandler.cancel_dump_traceback_later()
    os.write(acknowledged, b"ready\n")
    for step in range(first, first + count):
        run.log({"loss": 1 / (step + 1), "step": step}, step=step)
        os.write(acknowledged, b"%d\n" % step)
        if step % 20 == 0:
            time.sleep(0.002)
    if "--forever" in sys.argv:
        time.sleep(600)
    report = run.finish()
    sys.exit(0 if report.complete else 3)


if __name__ == "__main__":
    main()
