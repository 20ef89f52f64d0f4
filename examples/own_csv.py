"""Your own table: which solver to run on which instance, from a CSV file of scores.

Usage: python examples/own_csv.py [scores.csv]; without a file, a small one is made up.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import contextgap as cg


def made_up_scores(path: Path) -> Path:
    """Write 300 instances with two features and three solvers' scores."""
    rng = np.random.default_rng(0)
    size, density = rng.uniform(10, 1000, 300), rng.uniform(0, 1, 300)
    scores = np.column_stack([1 - size / 1000, density, 0.6 - 0.2 * density])
    table = np.column_stack([size, density, scores])
    header = "size,density,greedy,exact,random"
    np.savetxt(path, table, delimiter=",", header=header, comments="")
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        given = Path(sys.argv[1]) if len(sys.argv) > 1 else None
        path = given or made_up_scores(Path(folder) / "scores.csv")
        problem = cg.problems.Table(path, rewards=["greedy", "exact", "random"], scale=False)
        instances = problem.sample(seed=0)
    explore, exploit = instances.split(0.5, 0.5)
    learner = cg.Learner(
        instances.arms, kernel=cg.Gaussian.from_contexts(explore.contexts), prior_mean="auto"
    )
    for row in range(len(explore)):  # one solver run per instance, not three
        solver = learner.ask(explore.contexts[row])
        score = explore.observations[row, instances.arms.index(solver)]
        learner.tell(explore.contexts[row], solver, score)
    policy = learner.freeze()
    chosen = [instances.arms.index(arm) for arm in policy.recommend(exploit.contexts)]
    single = exploit.regret_table.mean(axis=0).min()
    print(f"runs paid for: {len(explore)} of {len(explore) * 3}")
    print(f"average regret: {exploit.regret(chosen).mean():.4f}; best single solver: {single:.4f}")


if __name__ == "__main__":
    main()
