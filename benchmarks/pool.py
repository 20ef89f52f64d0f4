"""Choosing the contexts to try against their order of arrival, on the same budget of trials."""

from __future__ import annotations

import argparse

import numpy as np

import contextgap as cg
from contextgap.studies.problems import Classification, Problem, Sinusoids

METHODS = ("auto", "contextual-gap", "elimination", "knowledge-gradient", "uniform")
BUDGETS = (100, 200, 400)
POOL, EVALUATE = 400, 1000


def sinusoids(seed: int) -> tuple[Problem, Problem]:
    return Sinusoids(n_arms=10).sample(POOL + EVALUATE, seed=seed).split(POOL, EVALUATE)


def digits(seed: int) -> tuple[Problem, Problem]:
    return Classification("digits").sample(seed=0).split(POOL, EVALUATE, seed=seed)


PROBLEMS = {
    "10 sines": (sinusoids, 0.0),
    "10 sines, noise 0.3": (sinusoids, 0.3),
    "digits": (digits, 0.0),
}


def regrets(
    pool: Problem, rest: Problem, noise: float, method: str, seed: int, chosen: bool
) -> list[float]:
    """Return the average regret elsewhere after every budget; noise is fresh at every trial."""
    learner = cg.Learner(pool.n_arms, method=method, seed=seed)
    rng = np.random.default_rng(seed)
    order = rng.integers(len(pool), size=BUDGETS[-1])
    found = []
    for step, passive in enumerate(order, 1):
        if chosen:
            context, arm = learner.ask(pool=pool.contexts)
            row = int(np.flatnonzero((pool.contexts == context).all(axis=1))[0])
        else:
            row = int(passive)
            arm = learner.ask(pool.contexts[row])
        learner.tell(pool.contexts[row], arm, pool.rewards[row, arm] + noise * rng.normal())
        if step in BUDGETS:
            picks = learner.freeze().recommend(rest.contexts).astype(np.intp)
            found.append(float(rest.regret(picks).mean()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    seeds = range(options.seeds)
    print(f"average regret after {', '.join(map(str, BUDGETS))} trials, {len(seeds)} seeds;")
    print(f"a pool of {POOL} contexts, default settings, evaluated on {EVALUATE} others;")
    print("ratio: chosen over in order of arrival, ± its paired standard error")
    print(f"{'problem':20} {'method':19} {'in order of arrival':24} {'chosen':24} ratio")
    for name in options.problems:
        make, noise = PROBLEMS[name]
        for method in options.methods:
            ends = np.array(
                [
                    [regrets(*make(seed), noise, method, seed, chosen) for chosen in (False, True)]
                    for seed in seeds
                ]
            )
            passive, active = means = ends.mean(axis=0)
            ratio = active / passive
            errors = (ends[:, 1] - ratio * ends[:, 0]).std(axis=0, ddof=1) / len(seeds) ** 0.5
            columns = [" ".join(f"{x:7.4f}" for x in way) for way in means]
            ratios = zip(ratio, errors / passive, strict=True)
            columns.append(" ".join(f"{x:.2f} ± {error:.2f}" for x, error in ratios))
            print(f"{name:20} {method:19} {columns[0]:24} {columns[1]:24} {columns[2]}", flush=True)


if __name__ == "__main__":
    main()
