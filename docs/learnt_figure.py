"""Draw learnt.png and decision.png: what a learner knows after 150 trials of three sensors.

Usage: python docs/learnt_figure.py
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot

import contextgap as cg


def explored() -> cg.Learner:
    """Return a learner that tried sensors whose rewards depend on the sun and the load."""
    rng, learner = np.random.default_rng(0), cg.Learner(["hull", "panel", "boom"], seed=0)
    for sun, load in rng.uniform(-1, 1, (150, 2)):
        context = {"sun": sun, "load": load}
        arm = learner.ask(context)
        expected = {"hull": np.sin(3 * sun), "panel": load, "boom": 0.2}[arm]
        learner.tell(context, arm, expected + 0.3 * rng.normal())
    return learner


def main() -> None:
    learner = explored()
    figure = pyplot.figure(figsize=(9.5, 7.6), layout="constrained")
    above, below = figure.subfigures(2, 1)  # their columns need not have the same widths
    upper_left, upper_right = above.subplots(1, 2)
    lower_left, lower_right = below.subplots(1, 2, width_ratios=[1, 1.2])
    cg.plot.map(learner, "sun", "load", ax=upper_left)
    cg.plot.along(learner, "sun", ax=upper_right)
    for axes in (upper_left, upper_right):
        axes.locator_params(axis="x", nbins=5)
    cg.plot.importance(learner, ax=lower_left)
    cg.plot.explanation(learner.freeze().explain({"sun": 0.5, "load": 0.5}), ax=lower_right)
    one, ax = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    cg.plot.decision(learner.freeze().decide({"sun": 0.5, "load": 0.5}), ax=ax)
    for name, drawn in (("learnt", figure), ("decision", one)):
        path = Path(__file__).parent / "images" / f"{name}.png"
        drawn.savefig(path, dpi=110, bbox_inches="tight")
        print(f"written to {path.name}")


if __name__ == "__main__":
    main()
