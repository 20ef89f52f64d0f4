"""Draw docs/images/costs.png: regret by what was spent, with and without known costs.

The problem of guide/costs.md, twenty seeds; bands are standard errors.

Usage: python docs/costs_figure.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import contextgap as cg

COSTS, SPENT, SEEDS = {"quick": 1.0, "thorough": 8.0}, np.arange(20, 201, 20), 20


def rewards(contexts: np.ndarray) -> np.ndarray:
    """Return what the two arms pay, on average."""
    return np.column_stack([contexts[:, 0], 0.3 - contexts[:, 1]])


def regret_by_spending(known: bool, seed: int) -> list[float]:
    """Explore, and return the regret of what would be deployed whenever so much was spent."""
    rng, grid = np.random.default_rng(seed), np.random.default_rng(99).uniform(-1, 1, (1000, 2))
    truth, arms = rewards(grid), list(COSTS)
    learner = cg.Learner(arms, costs=COSTS if known else None, seed=seed)
    spent, regret = 0.0, []
    for limit in SPENT:
        while spent < limit:
            context = rng.uniform(-1, 1, size=2)
            arm = learner.ask(context)
            paid = rewards(context[None])[0, arms.index(arm)] + 0.1 * rng.normal()
            learner.tell(context, arm, paid)
            spent += COSTS[arm]
        picked = [arms.index(arm) for arm in learner.recommend(grid)]
        regret.append(float((truth.max(axis=1) - truth[np.arange(1000), picked]).mean()))
    return regret


def main() -> None:
    """Draw one curve for each learner."""
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    ax = figure.add_subplot()
    for known, name, colour in [(False, "costs unknown", "#7f7f7f"), (True, "costs=", "#0072B2")]:
        found = np.array([regret_by_spending(known, seed) for seed in range(SEEDS)])
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(SEEDS)
        ax.semilogy(SPENT, mean, color=colour, label=name)
        ax.fill_between(SPENT, mean - error, mean + error, color=colour, alpha=0.25, lw=0)
        print(name, mean.round(4))
    ax.set_xlabel("spent; a thorough trial costs 8, a quick one 1")
    ax.set_ylabel("average simple regret")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    figure.savefig(Path(__file__).parent / "images" / "costs.png", dpi=110)


if __name__ == "__main__":
    main()
