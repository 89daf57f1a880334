"""A training that logs 1,000 steps. Kill the server or this program while it runs, and start it again.

    KINDEX_RUNS_RUN_ID=my-run python examples/train.py

Steps that were logged before are logged again with the same values: the server keeps one value for each step.
"""

import math
import random
import time

import kindex

with kindex.init(project="tutorial", name="first", config={"lr": 0.01, "optimizer": {"name": "adam"}}) as run:
    print(f"run {run.run_id}")
    for step in range(1000):
        loss = math.exp(-step / 200) + random.Random(step).gauss(0, 0.02)
        run.log({"loss": loss, "lr": 0.01 * 0.999**step}, step=step)
        time.sleep(0.01)
