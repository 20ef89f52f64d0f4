"""Draw the pictures of the guide that belong to one page each: data, noise and arms.

Usage: python docs/guide_figures.py
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import contextgap as cg

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7"]
GREY = "#7f7f7f"


def axes(count: int) -> list[Axes]:
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    found = list(np.atleast_1d(figure.subplots(1, count)))
    for ax in found:
        ax.spines[["top", "right"]].set_visible(False)
    return found


def save(ax: Axes, name: str) -> None:
    ax.figure.savefig(Path(__file__).parent / "images" / f"{name}.png", dpi=110)
    print(f"written to {name}.png")


def band(ax: Axes, x: np.ndarray, beliefs: object, arm: int, colour: str, label: str) -> None:
    """Draw the mean and the interval of one arm."""
    lower, upper = beliefs.lower[:, arm], beliefs.upper[:, arm]
    ax.fill_between(x, lower, upper, color=colour, alpha=0.2, lw=0)
    ax.plot(x, beliefs.mean[:, arm], color=colour, lw=2, label=label)


def data() -> None:
    """A category with a level never met, and a column that is cyclic."""
    rng, arms = np.random.default_rng(0), ["discount", "novelty"]
    columns = cg.Columns(country="category", hour=cg.Cyclic(24))
    visits = [
        {"country": str(country), "hour": int(hour)}
        for country, hour in zip(
            rng.choice(["DE", "FR", "IT"], 400), rng.integers(24, size=400), strict=True
        )
    ]
    shown = rng.choice(arms, 400)
    level = {"DE": 0.6, "FR": -0.2, "IT": 0.1}
    paid = [
        (level[visit["country"]] if arm == "discount" else np.cos(visit["hour"] * np.pi / 12) / 2)
        + 0.4 * rng.normal()
        for visit, arm in zip(visits, shown, strict=True)
    ]
    learner = cg.Learner(arms, columns=columns, seed=0).fit(visits, shown, paid)
    left, right = axes(2)
    countries = ["DE", "FR", "IT", "US (new)"]
    beliefs = learner.beliefs([{"country": name[:2], "hour": 12} for name in countries])
    for arm, name in enumerate(arms):
        place = np.arange(4) + 0.16 * (arm - 0.5)
        mean, lower = beliefs.mean[:, arm], beliefs.lower[:, arm]
        left.errorbar(place, mean, mean - lower, fmt="o", color=COLOURS[arm], capsize=3, label=name)
    left.set_xticks(range(4), countries)
    left.set(title="hour 12", ylabel="reward: mean and interval")
    hours = np.arange(24)
    beliefs = learner.beliefs([{"country": "FR", "hour": hour} for hour in hours])
    for arm, name in enumerate(arms):
        band(right, hours, beliefs, arm, COLOURS[arm], name)
    right.set(title="country FR", xlabel="hour", xticks=range(0, 24, 6))
    right.legend(frameon=False)
    save(left, "data")


def noise() -> None:
    """Clicks, their rate, and what is believed about it."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-1, 1, 300))[:, None]
    clicked = rng.random(300) < (0.25 + 0.2 * np.sin(3 * x[:, 0]))
    learner = cg.Learner(["ad"], seed=0).fit(x, ["ad"] * 300, clicked)
    (ax,) = axes(1)
    grid = np.linspace(-1, 1, 200)
    jitter = rng.uniform(-0.02, 0.02, 300)
    ax.plot(x[:, 0], clicked + jitter, ".", color=GREY, ms=4, label="clicks, 0 or 1")
    band(ax, grid, learner.beliefs(grid[:, None]), 0, COLOURS[0], "learnt mean and interval")
    ax.plot(grid, 0.25 + 0.2 * np.sin(3 * grid), color="black", ls="--", label="true click rate")
    ax.set(xlabel="context", ylabel="reward", ylim=(-0.06, 1.06))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    save(ax, "noise")


def arms() -> None:
    """Doses that share what they learn, with two that were never tried."""
    rng, features = np.random.default_rng(0), {dose: [dose] for dose in (4, 8, 12, 20, 24)}
    learner = cg.Learner(features, features=features, seed=0)
    for weight in rng.uniform(40, 120, 120):
        dose = learner.ask([weight])
        effect = np.exp(-(((dose - weight / 6) / 8) ** 2)) + 0.1 * rng.normal()
        learner.tell([weight], dose, effect)
    for dose in (16, 32):
        learner.add_arm(dose, features=[dose])
    (ax,) = axes(1)
    doses = np.array(learner.arms)
    for number, weight in enumerate((50, 110)):
        beliefs, colour = learner.beliefs([[weight]]), COLOURS[number]
        mean, lower, upper = (getattr(beliefs, name)[0] for name in ("mean", "lower", "upper"))
        known = np.isin(doses, list(features))
        for tried, face in ((known, colour), (~known, "white")):
            ax.errorbar(
                doses[tried] + 0.3 * (number - 0.5),
                mean[tried],
                [(mean - lower)[tried], (upper - mean)[tried]],
                fmt="o",
                color=colour,
                mfc=face,
                capsize=3,
                label=f"{weight} kg" + ("" if face == colour else ", dose never tried"),
            )
    ax.set(xlabel="dose, mg", ylabel="effect: mean and interval", xticks=sorted(doses))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    save(ax, "arms")


if __name__ == "__main__":
    data()
    noise()
    arms()
