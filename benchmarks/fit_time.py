"""How long learning scales takes, against another checkout of this project.

After ``git worktree add ../before COMMIT``, run ``python benchmarks/fit_time.py ../before/src``.
Both fit the same logs, in turns, each in a process of its own; the ratio is that of the shortest
times.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src"
SIZES = ((1200, 3), (1200, 6))  # observations in 8 dimensions, and arms
FIT = """
import time, numpy as np, contextgap as cg
rows, arms = {size}
rng = np.random.default_rng({seed})
x, a = rng.normal(size=(rows, 8)), rng.integers(arms, size=rows)
y = np.sin(x[:, 0] + a) + 0.5 * x[:, 1] + {noise} * rng.normal(size=rows)
start = time.process_time()
cg.Learner(arms, seed=0).fit(x, a, y)
print(time.process_time() - start)
"""


def seconds(source: Path, size: tuple[int, int], seed: int, noise: float) -> float:
    environment = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    code = FIT.format(size=size, seed=seed, noise=noise)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    before = Path(sys.argv[1])
    for size in SIZES:
        for noise in (0.1, 2.0):
            times = [
                [seconds(source, size, seed, noise) for source in (before, HERE)]
                for seed in (0, 0, 0, 1, 1, 1)
            ]
            then, now = (
                sum(min(turn[side] for turn in times[i : i + 3]) for i in (0, 3)) for side in (0, 1)
            )
            print(
                f"{size[0]} rows, {size[1]} arms, noise {noise:g}: {now / then:.2f} x", flush=True
            )


if __name__ == "__main__":
    main()
