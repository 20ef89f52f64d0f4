"""Does a spacecraft's policy fit in 32 kB? Sizes, decisions kept and regret added, by seed.

Run with ``python benchmarks/compression.py [number of seeds] [--figure folder]``. A policy learnt
from the first 3000 frames is compressed with these as reference contexts; the 950 frames that
follow, which neither learning nor compressing saw, tell how many decisions changed and what that
costs in true regret; "in C" is how many the compiled ``float`` export keeps (- without a compiler).
The figure is the curve of all seeds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import row

import contextgap as cg
from contextgap.export.c import CompiledPolicy, CompilerError, write_c
from contextgap.export.compression import CompressionReport, compress
from contextgap.studies.problems import Problem, Spacecraft

EXPLORED, UNSEEN = 3000, 950
ROM, KEPT = 32768, 0.97


def learnt(explore: Problem) -> cg.Policy:
    learner = cg.Learner(explore.arms, seed=0)
    place = {arm: i for i, arm in enumerate(explore.arms)}
    for context, rewards in zip(explore.contexts, explore.observations, strict=True):
        arm = learner.ask(context)
        learner.tell(context, arm, rewards[place[arm]])
    return learner.freeze()


def indices(policy: cg.Policy, contexts: np.ndarray) -> np.ndarray:
    place = {arm: i for i, arm in enumerate(policy.arms)}
    return np.array([place[arm] for arm in policy.recommend(contexts)])


def kept_in_c(policy: cg.Policy, size: int, contexts: np.ndarray, wanted: np.ndarray) -> str:
    """How many decisions the exported float code keeps, whose constants must take ``size``."""
    with tempfile.TemporaryDirectory() as folder:
        export = write_c(policy, folder, float32=True)
        if export.rom_bytes != size:
            raise RuntimeError(f"the C export takes {export.rom_bytes} bytes, not {size}")
        try:
            compiled = CompiledPolicy(folder)
        except CompilerError:
            return "-"
        return f"{(compiled.recommend(contexts.astype(np.float32)) == wanted).mean():.2%}"


def one(seed: int) -> tuple[CompressionReport, float, float, float]:
    """Compress one policy; the report, decisions kept on unseen frames, regret before, after."""
    flight = Spacecraft().sample(EXPLORED + 3000, seed=seed)
    explore = flight.take(np.arange(EXPLORED))
    exploit = flight.take(np.arange(EXPLORED, EXPLORED + UNSEEN))
    policy = learnt(explore)
    start = time.perf_counter()
    small, report = compress(policy, bytes=ROM, contexts=explore.contexts)
    taken = time.perf_counter() - start
    before, after = (indices(each, exploit.contexts) for each in (policy, small))
    kept = float((before == after).mean())
    in_c = kept_in_c(small, report.bytes, exploit.contexts, before)
    regrets = [float(exploit.regret(arms).mean()) for arms in (before, after)]
    points = "+".join(map(str, report.points))
    print(
        f"{seed:4} {report.bytes_before:9} {report.bytes:7}  {points:13} {report.recommender:12}"
        f" {report.agreement:8.2%} {kept:8.2%} {in_c:>7} {report.added_regret:9.1e}"
        f" {report.added_regret_bound:8.1e} {regrets[0]:8.4f} {regrets[1]:8.4f} {taken:6.1f}",
        flush=True,
    )
    return report, kept, *regrets


def main(seeds: int, folder: Path | None) -> None:
    print(f"{EXPLORED} frames explored, then {UNSEEN} unseen ones; at most {ROM} bytes, float")
    print(f"{'':10}bytes{'':13}points{'':22}decisions kept", end="")
    print(f"{'':13}added regret{'':8}true regret")
    print("seed    before   after  by arm        deployed by  held-out   unseen    in C", end="")
    print("      mean  at most   before    after seconds")
    found = [one(seed) for seed in range(seeds)]
    reports = [each[0] for each in found]
    held_out, unseen = [r.agreement for r in reports], [each[1] for each in found]
    before, after = (np.mean([each[i] for each in found]) for i in (2, 3))
    print(f"average true regret {before:.4f} before, {after:.4f} after")
    print(f"average held-out agreement {np.mean(held_out):.4f}, unseen {np.mean(unseen):.4f}")
    wanted = f">= {KEPT}"
    lowest = min(held_out)
    print(row("lowest held-out agreement", lowest, "", wanted, lowest >= KEPT))
    mean = float(np.mean(unseen))
    print(row("mean agreement on unseen frames", mean, "", wanted, mean >= KEPT))
    worst = min(unseen)
    print(row("lowest agreement on unseen frames", worst, "", wanted, worst >= KEPT))
    if folder is not None:
        from compression_figure import compression_curve

        figure = compression_curve(reports, bytes=ROM, agreement=KEPT)
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / "compression.png", dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=5, help="number of seeds")
    parser.add_argument("--figure", type=Path, default=None, help="folder for compression.png")
    given = parser.parse_args()
    main(given.seeds, given.figure)
