"""Two cheap and two dear arms: regret at equal spending, with costs and blind to them.

    python benchmarks/costs.py [SEEDS]

Contexts are uniform on the unit square. Expected rewards are smooth random functions, one for each
arm, with noise of 0.3 standard deviations. A trial of two arms costs about 1, of the two others
about 10 or 30, times a factor that depends on the context. ``known`` knows the arms' costs,
``told`` is told what each trial cost, ``blind`` neither; contexts are the same for the same step.
Regret is the average simple regret at 1000 other contexts, in units of the rewards' standard
deviation; spending is in units of a dear trial.

If the error of every arm fell as 1/trials and regret as the sum of errors, spending in the best
proportion would have (1 + √c)²/(2 + 2c) of the regret of equally many trials of each arm, c being
the ratio of costs: 0.79 for 10, 0.68 for 30.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import contextgap as cg

BUDGETS = (10, 20, 40, 80)  # trials of a dear arm
DEAR = (10.0, 30.0)
_NOISE, _WAVES = 0.3, 40


class Bench:
    """Rewards of four arms, of unit variance, as sums of random waves; and what trials cost."""

    def __init__(self, seed: int, dear: float) -> None:
        self.costs = np.array([1.0, 1.0, dear, dear])
        self.rng = np.random.default_rng([37, seed])
        self.waves = self.rng.normal(scale=3.0, size=(2, 4, _WAVES))
        self.phases = self.rng.uniform(0, 2 * np.pi, size=(4, _WAVES))

    def rewards(self, contexts: np.ndarray) -> np.ndarray:
        """Return expected rewards, contexts by arms."""
        angles = np.einsum("nd,daw->naw", contexts, self.waves) + self.phases
        return np.cos(angles).sum(axis=2) * np.sqrt(2 / _WAVES)

    def cost(self, context: np.ndarray, arm: int) -> float:
        """Return what a trial costs."""
        return float(self.costs[arm] * np.exp(context[0] - 0.5))


def explored(seed: int, kind: str, dear: float) -> tuple[list[float], float]:
    """Return the regret at every budget, and milliseconds of CPU per step."""
    bench = Bench(seed, dear)
    tests = bench.rng.uniform(size=(1000, 2))
    truth, regrets, steps, took = bench.rewards(tests), list[float](), 0, 0.0
    costs = dict(enumerate(bench.costs)) if kind == "known" else None
    learner, spent = cg.Learner(4, seed=seed, costs=costs), 0.0
    for budget in BUDGETS:
        while spent < budget * dear:
            x, noise = bench.rng.uniform(size=2), bench.rng.normal(scale=_NOISE, size=4)
            rewards = bench.rewards(x[None])[0] + noise
            start = time.process_time()
            arm = learner.ask(x)
            cost = bench.cost(x, arm)
            learner.tell(x, arm, float(rewards[arm]), cost=cost if kind == "told" else None)
            took, steps, spent = took + time.process_time() - start, steps + 1, spent + cost
        picks = np.array(learner.recommend(tests), dtype=int)
        regrets.append(float((truth.max(axis=1) - truth[np.arange(len(tests)), picks]).mean()))
    return regrets, 1000 * took / steps


def main(seeds: int = 12) -> None:
    """Print regrets by spending, and their ratio to those of blind exploration."""
    for dear in DEAR:
        kinds = ("blind", "known", "told")
        found = {kind: [explored(seed, kind, dear) for seed in range(seeds)] for kind in kinds}
        blind = np.array([regrets for regrets, _ in found["blind"]])
        for kind in kinds:
            own = np.array([regrets for regrets, _ in found[kind]])
            ratio = own.mean(axis=0) / blind.mean(axis=0)
            error = (own - ratio * blind).std(axis=0, ddof=1) / blind.mean(axis=0) / seeds**0.5
            took = np.mean([each for _, each in found[kind]])
            print(f"dear arms cost {dear:g}, {kind}: {took:.2f} ms of CPU per step")
            for place, budget in enumerate(BUDGETS):
                print(
                    f"  spent {budget:2d}: regret {own[:, place].mean():.4f}, "
                    f"{ratio[place]:.2f} ± {error[place]:.2f} of blind"
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
