"""The learner without settings on noisy logs, beside plain alternatives.

Beside (a) ``Gaussian.from_contexts``, of which only the ridge (and the rewards' scale and level) is
learnt, and (b) the best single arm, known in hindsight. Ratios are to the better of the two in that
very log; regrets below a thousandth of the rewards' spread count as that.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes must not fight for the cores

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from noisy_logs import CELLS, Cell, Log
from scipy.optimize import minimize_scalar
from timing import row

import contextgap as cg
from contextgap.tuning.criteria import evidence
from contextgap.tuning.sample import looked_at


def untouched(log: Log) -> tuple[float, str]:
    learner = cg.Learner(log.n_arms, seed=0).fit(log.contexts, log.arms, log.rewards)
    return log.regret(learner.recommend(log.new)), learner.tuning.chosen


def only_ridge_learnt(log: Log) -> float:
    kernel = cg.Gaussian.from_contexts(log.contexts)
    contexts = [log.contexts[log.arms == arm] for arm in range(log.n_arms)]
    rewards = [log.rewards[log.arms == arm] for arm in range(log.n_arms)]
    places = looked_at(contexts, rewards)
    grams = [kernel(x[own], x[own]) for x, own in zip(contexts, places, strict=True)]
    heard = [y[own] for y, own in zip(rewards, places, strict=True)]

    def score(log_ratio: float) -> object:
        matrices = [gram + np.exp(log_ratio) * np.eye(len(gram)) for gram in grams]
        return evidence(matrices, heard, float(log.rewards.var()), 1.0)

    bounds = (np.log(1e-6), np.log(1e4))
    found = minimize_scalar(lambda x: score(x).loss, bounds=bounds, method="bounded")
    best = score(found.x)
    learner = cg.Learner(
        log.n_arms,
        kernel=best.reward_scale * kernel,
        ridge=np.exp(found.x) * best.reward_scale,
        prior_mean=best.prior_mean,
        width=cg.PosteriorWidth(2.0),
        seed=0,
    )
    learner.fit(log.contexts, log.arms, log.rewards)
    return log.regret(learner.recommend(log.new))


def measure(task: tuple[Cell, int]) -> tuple[float, float, float, str, float]:
    """Return the three regrets, the model chosen, and the ratio."""
    cell, seed = task
    log = cell.log(seed)
    ours, chosen = untouched(log)
    plain, single = only_ridge_learnt(log), log.regret_of_best_single_arm
    least = 1e-3 * float(log.expected.std())
    return ours, plain, single, chosen, max(ours, least) / max(min(plain, single), least)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--most-rows", type=int, default=4000)
    parser.add_argument("--kinds", default="dense,sparse,groups,clicks,money")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    cells = [c for c in CELLS if c.kind in options.kinds.split(",") and c.rows <= options.most_rows]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [(cell, seed) for cell in cells for seed in seeds]
    found = []
    with ProcessPoolExecutor(options.workers) as pool:
        for done, result in enumerate(pool.map(measure, tasks), 1):
            found.append(result)
            print(f"\r{done} of {len(tasks)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    report(tasks, found)


def report(
    tasks: list[tuple[Cell, int]], found: list[tuple[float, float, float, str, float]]
) -> None:
    print("average regret, mean over seeds; ratio to the better of (a) and (b), mean and highest")
    print(f"{'kind':7} {'noise':>5} {'d':>3} {'rows':>5}", end=" ")
    print(f"{'ours':>8} {'(a)':>8} {'(b)':>8} {'ratio':>6} {'worst':>6}  models chosen")
    ratios = np.array([result[-1] for result in found])
    for cell in dict.fromkeys(cell for cell, _ in tasks):
        own = [place for place, (other, _) in enumerate(tasks) if other == cell]
        ours, plain, single = np.mean([found[place][:3] for place in own], axis=0)
        chosen = " ".join(found[place][3][:3] for place in own)
        print(f"{cell.kind:7} {cell.noise:5g} {cell.dimension:3} {cell.rows:5}", end=" ")
        print(f"{ours:8.4f} {plain:8.4f} {single:8.4f}", end=" ")
        print(f"{ratios[own].mean():6.2f} {ratios[own].max():6.2f}  {chosen}")
    blocks: dict[tuple[str, float, int], list[float]] = {}
    for (cell, _), ratio in zip(tasks, ratios, strict=True):
        blocks.setdefault((cell.kind, cell.noise, cell.dimension), []).append(float(ratio))
    means = {block: float(np.mean(each)) for block, each in blocks.items()}
    worst = max(means, key=means.__getitem__)
    over = sum(mean > 1.05 for mean in means.values())
    print(row("mean ratio", ratios.mean(), "", "<= 0.95", ratios.mean() <= 0.95))
    print(row("geometric mean ratio", np.exp(np.log(ratios).mean()), "", "", True))
    title = f"highest mean over noise x dimension ({worst[0]}, {worst[1]:g}, {worst[2]})"
    print(row(title, means[worst], "", "<= 1.05", means[worst] <= 1.05))
    print(f"  {over} of {len(means)} blocks above 1.05")
    print(row("highest ratio of a single fit", ratios.max(), "", "<= 1.3", ratios.max() <= 1.3))
    print(f"  {(ratios > 1.3).sum()} of {len(ratios)} fits above 1.3")


if __name__ == "__main__":
    main()
