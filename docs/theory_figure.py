"""Draw docs/images/theory.png, a panel per result, and print the numbers that theory.md quotes.

Usage: python docs/theory_figure.py
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import contextgap as cg
from contextgap.studies.experiments.paper import pilot, plan
from contextgap.studies.theory import (
    RegretBound,
    Spectrum,
    burn_in,
    confidence,
    contextual_gap_rate,
    eigenvalue_bound,
    information_gain_bound,
    scale,
    spectrum,
    uniform_rate,
    width_envelope,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from coverage_trial.cells import draw_functions

BLUE, RED, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#7f7f7f"
NOISE, NORM, RIDGE = 0.1, 1.0, 0.2
CIRCLE = Spectrum(eigenvalue_floor=0.5, effective_dimension=2)  # unit circle, linear kernel


def intervals(ax: Axes, rng: np.random.Generator) -> None:
    kernel, x = cg.Gaussian(0.15), np.linspace(0, 1, 200)[:, None]
    seen = rng.uniform(0, 0.75, (40, 1))
    truth = draw_functions(kernel, np.vstack([x, seen]), 1, NORM, rng)[:, 0]
    observed = truth[200:] + NOISE * rng.standard_normal(40)
    for width, colour, label in (
        (cg.TheoremWidth(NOISE, NORM, 0.1), RED, "theorem"),
        (cg.TheoremWidth(NOISE, NORM, 0.1, tight=True), BLUE, "tight"),
        (cg.NonadaptiveWidth(NOISE, NORM, 0.1, len(x), tight=True), GREEN, "nonadaptive, tight"),
    ):
        learner = cg.Learner(1, kernel=kernel, ridge=RIDGE, width=width)
        policy = learner.fit(seen, [0] * 40, observed).freeze()
        found = [policy.decide(each) for each in x]
        lower, upper = (np.array([getattr(d, n)[0] for d in found]) for n in ("lower", "upper"))
        ax.fill_between(x[:, 0], lower, upper, color=colour, alpha=0.25, lw=0, label=label)
        print(f"mean half width, {label}: {(upper - lower).mean() / 2:.3f}")
    ax.plot(x[:, 0], truth[:200], color="black", lw=1.5, label="truth")
    ax.plot(seen[:, 0], observed, ".", color=GREY, ms=4)
    ax.legend(fontsize=8, frameon=False)
    ax.set(title="Intervals: Theorem 4.1, nonadaptive", xlabel="context", ylabel="reward")


def eigenvalues(ax: Axes, rng: np.random.Generator) -> None:
    steps = np.unique(np.logspace(1, 4, 60).astype(int))
    for _ in range(20):
        angle = rng.uniform(0, 2 * np.pi, steps[-1])
        points = np.column_stack([np.cos(angle), np.sin(angle)])
        least = [np.linalg.eigvalsh(points[:t].T @ points[:t])[0] / t for t in steps]
        ax.semilogx(steps, least, color=BLUE, lw=0.6, alpha=0.6)
    ax.semilogx(steps, eigenvalue_bound(steps, CIRCLE, 0.1) / steps, color=RED, lw=2)
    ax.set(title="Lemma 5.1: eigenvalue and bound", xlabel="contexts", ylabel="λ / contexts")


def envelope(ax: Axes, rng: np.random.Generator) -> None:
    first = burn_in(CIRCLE, RIDGE, 0.1)
    pulls = np.unique(np.logspace(0, 5, 60).astype(int))
    gain = information_gain_bound(int(pulls[-1]), RIDGE, CIRCLE)
    alpha = float(scale(confidence(0.05), NOISE, NORM, RIDGE, gain))
    angle = rng.uniform(0, 2 * np.pi, pulls[-1])
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    widths = []
    for n in pulls:
        inverse = np.linalg.inv(points[:n].T @ points[:n] + RIDGE * np.eye(2))
        widths.append(2 * alpha * np.sqrt(np.linalg.eigvalsh(inverse)[-1]))
    ax.loglog(pulls, widths, color=BLUE, lw=2, label="widest interval")
    ax.loglog(pulls, width_envelope(pulls, alpha, RIDGE, CIRCLE), color=RED, label="envelope")
    ax.axvline(first, color=GREY, ls=":", label=f"burn-in {first}")
    ax.legend(fontsize=8, frameon=False)
    ax.set(title="Lemma 5.2: envelope of the width", xlabel="pulls of the arm", ylabel="width")


def probability(ax: Axes) -> None:
    for tolerance, colour in ((0.1, BLUE), (0.01, RED)):
        bound = RegretBound(
            n_arms=3,
            hardness=3 / tolerance**2,
            noise=NOISE,
            norm=NORM,
            ridge=0.01,
            spectrum=CIRCLE,
            failure_probability=0.01,
        )
        steps = np.unique(np.logspace(4, 7, 200).astype(int))
        values = [bound.probability(int(t)) for t in steps]
        ax.semilogx(steps, values, color=colour, lw=2, label=f"regret below {tolerance:g}")
        needed = bound.steps_for(0.9)
        print(f"theorem 5.3, circle, {tolerance:g}: burn-in {bound.burn_in}, steps {needed}")
    for name, kernel in (("Gaussian(1.0)", cg.Gaussian(1.0)), ("Gaussian(0.3)", cg.Gaussian(0.3))):
        square = np.random.default_rng(0).uniform(size=(1000, 2))
        found = spectrum(square, kernel)
        wide = RegretBound(
            n_arms=3,
            hardness=300,
            noise=NOISE,
            norm=NORM,
            ridge=0.01,
            spectrum=found,
            failure_probability=0.01,
        )
        print(f"theorem 5.3, square, {name}: {found}, steps {wide.steps_for(0.9):.3g}")
    ax.legend(fontsize=8, frameon=False)
    ax.set(title="Theorem 5.3's formula: probability", xlabel="exploration steps", ylim=(0, 1))


def rates(ax: Axes) -> None:
    steps = np.logspace(0, 3, 200)
    for dimension, colour in ((1, BLUE), (5, GREEN)):
        values = uniform_rate(steps, dimension)
        ax.loglog(steps, values, color=colour, label=f"uniform, {dimension}-D")
    gap = np.minimum(contextual_gap_rate(steps), 1)
    ax.loglog(steps, gap, color=RED, lw=2, label="contextual-gap")
    ax.set(
        title="Rates of different problems, constants 1",
        xlabel="exploration steps",
        ylim=(1e-8, 1.5),
    )
    ax.legend(fontsize=8, frameon=False)


def planner(ax: Axes, rng: np.random.Generator) -> None:
    table = pilot(
        rng.uniform(size=(200, 2)),
        n_arms=3,
        kernel=cg.Gaussian(0.4),
        noise=NOISE,
        budget=200,
        repetitions=20,
    )
    bands = table.groupby("checkpoint")["average_regret"].quantile([0.05, 0.5, 0.95]).unstack()
    ax.fill_between(bands.index, bands[0.05], bands[0.95], color=BLUE, alpha=0.25, lw=0)
    ax.semilogy(bands.index, bands[0.5], color=BLUE, lw=2)
    ax.set(title="Pilot: what to expect", xlabel="exploration steps", ylabel="average regret")


def plan_example() -> None:
    contexts = np.random.default_rng(0).uniform(size=(200, 2))
    found = plan(
        contexts,
        n_arms=3,
        kernel=cg.Gaussian.from_contexts(contexts),
        noise=0.1,
        tolerance=0.1,
    )
    print(f"plan, 200 contexts of the square: {found.pilot_steps}, {found.theorem_steps}")


def main() -> None:
    figure = Figure(figsize=(12, 7), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    rng = np.random.default_rng(1)
    intervals(axes[0], rng)
    eigenvalues(axes[1], rng)
    envelope(axes[2], rng)
    probability(axes[3])
    rates(axes[4])
    planner(axes[5], rng)
    plan_example()
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).parent / "images" / "theory.png", dpi=110)


if __name__ == "__main__":
    main()
