"""The learner without settings on noisy logs, beside plain alternatives.

Beside (a) ``Gaussian.from_contexts``, of which only the ridge (and the rewards' scale and level) is
learnt, and (b) the best single arm, known in hindsight. Ratios are to the better of the two in that
very log; regrets below a thousandth of the rewards' spread count as that. What could be reached at
all is shown by (c), a Gaussian process that is told what nobody knows: from which distribution the
log was drawn, with the relevant numbers and the noise. Its ratios are to the same two.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes must not fight for the cores

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from noisy_logs import CELLS, Cell, Log
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from timing import row

import contextgap as cg
from contextgap.models.tuning.criteria import Stack, distinct, evidence, part_of


def untouched(log: Log) -> tuple[float, str]:
    learner = cg.Learner(log.n_arms, seed=0).fit(log.contexts, log.arms, log.rewards)
    return log.regret(learner.recommend(log.new)), learner.tuning.chosen


def only_ridge_learnt(log: Log) -> float:
    kernel = cg.Gaussian.from_contexts(log.contexts)
    contexts = [log.contexts[log.arms == arm] for arm in range(log.n_arms)]
    rewards = [log.rewards[log.arms == arm] for arm in range(log.n_arms)]
    contexts, rewards = part_of(distinct((contexts, rewards)))
    grams = [kernel(x, x) for x in contexts]
    stacks = [Stack(y[None], np.ones((1, len(y)))) for y in rewards]

    def score(log_ratio: float) -> object:
        matrices = [(gram + np.exp(log_ratio) * np.eye(len(gram)))[None] for gram in grams]
        return evidence(matrices, stacks, float(log.rewards.var()), 1.0)

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


def informed(log: Log) -> float:
    """Return the regret of the posterior means under the distribution the log is drawn from."""
    if log.drawn is None:
        return np.nan
    means = []
    for arm in range(log.n_arms):
        x, y = log.contexts[log.arms == arm], log.rewards[log.arms == arm]
        heard = log.drawn.covariance(x, x) + log.drawn.noise_variance * np.eye(len(x))
        means.append(log.drawn.covariance(log.new, x) @ cho_solve(cho_factor(heard), y))
    return log.regret(np.argmax(means, axis=0))


class Measured(NamedTuple):
    """Regrets, the model chosen, and the ratios of ours and (c) to the better of (a) and (b)."""

    ours: float
    plain: float
    single: float
    informed: float
    chosen: str
    ratio: float
    informed_ratio: float


def measure(task: tuple[Cell, int]) -> Measured:
    cell, seed = task
    log = cell.log(seed)
    ours, chosen = untouched(log)
    plain, single, told = only_ridge_learnt(log), log.regret_of_best_single_arm, informed(log)
    least = 1e-3 * float(log.expected.std())
    better = max(min(plain, single), least)
    ratios = [max(regret, least) / better for regret in (ours, told)]
    return Measured(ours, plain, single, told, chosen, *ratios)


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


def report(tasks: list[tuple[Cell, int]], found: list[Measured]) -> None:
    print("average regret, mean over seeds; ratio to the better of (a) and (b), mean and highest")
    print(f"{'kind':7} {'noise':>5} {'d':>3} {'rows':>5}", end=" ")
    print(f"{'ours':>7} {'(a)':>7} {'(b)':>7} {'(c)':>7} {'ratio':>5} {'worst':>5}  models chosen")
    ratios = np.array([result.ratio for result in found])
    told = np.array([result.informed_ratio for result in found])
    for cell in dict.fromkeys(cell for cell, _ in tasks):
        own = [place for place, (other, _) in enumerate(tasks) if other == cell]
        regrets = np.mean([found[place][:4] for place in own], axis=0)
        chosen = " ".join(found[place].chosen[:3] for place in own)
        print(f"{cell.kind:7} {cell.noise:5g} {cell.dimension:3} {cell.rows:5}", end=" ")
        print(" ".join(f"{regret:7.4f}" for regret in regrets), end=" ")
        print(f"{ratios[own].mean():5.2f} {ratios[own].max():5.2f}  {chosen}")
    print("the learner without settings")
    judge(tasks, ratios)
    known = np.isfinite(told)
    if not known.any():
        return
    print(f"(c), told what nobody knows, where there is such a thing: {known.sum()} logs")
    judge([task for task, one in zip(tasks, known, strict=True) if one], told[known])


def judge(tasks: list[tuple[Cell, int]], ratios: np.ndarray) -> None:
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
