"""Tables with columns of all kinds, and policies learnt from them."""

import numpy as np
import pandas as pd

import contextgap as cg
from contextgap.kernels import Warped
from tests.export.test_c import RULES

COLUMNS = cg.Columns(
    country=cg.Category(missing=True),
    hour=cg.Cyclic(24, missing=True),
    turned_on="category",
    x=cg.Number(missing=True),
    when=cg.Date(("week", "year"), missing=True),
    load="number",
    tilt=cg.Cyclic(360),
    crew="category",
)
LEVELS = {"country": ["de", "fr", "it", None], "turned_on": [True, False], "crew": [1, 2, 3]}
UNSEEN = {"country": "es", "turned_on": "perhaps", "crew": 7}
# What kernels see: hour 3, x 2, when 6, load 1, tilt 2, three codes.
BANDWIDTHS = (1.5, 1.5, 1, 2, 1, 300, 1, 1, 1, 1, 1.5, 2, 1.5, 1.5, 0.8, 1.5, 1.1)
KERNELS = {
    "gaussian": cg.Gaussian(BANDWIDTHS, categories=3),
    "matern 1/2": cg.Matern(BANDWIDTHS, 0.5, categories=3),
    "matern 3/2": cg.Matern(BANDWIDTHS, 1.5, categories=3),
    "matern 5/2": cg.Matern(BANDWIDTHS, 2.5, categories=3),
    "warped": Warped(
        cg.Gaussian(BANDWIDTHS, categories=3), [0.0] * 17, (*[0.0] * 3, 0.1, *[0.0] * 13)
    ),
    "one bandwidth": cg.Gaussian(100.0, categories=3) + cg.Matern(90.0, categories=3),
    "trend": 0.5 * cg.Linear(BANDWIDTHS, (*[0.0] * 5, 19900.0, *[0.1] * 11), categories=3)
    + cg.Gaussian(BANDWIDTHS, categories=3),
    "one unit": 0.3 * cg.Linear(500.0, categories=3) * cg.Gaussian(BANDWIDTHS, categories=3)
    + cg.Gaussian(BANDWIDTHS, categories=3),
}


def table(count, seed=0, unseen=0.0, gaps=0.15):
    """A table of raw cells; some of its levels were never met, where that is asked for."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2024-05-01") + pd.to_timedelta(rng.uniform(0, 300, count), unit="D")
    columns = {
        name: np.array(levels, dtype=object)[rng.integers(len(levels), size=count)]
        for name, levels in LEVELS.items()
    }
    for name, level in UNSEEN.items():
        columns[name][rng.random(count) < unseen] = level
    columns |= {
        "hour": rng.uniform(0, 24, count),
        "x": rng.standard_normal(count),
        "load": rng.uniform(-1, 1, count),
        "tilt": rng.uniform(-360, 720, count),
    }
    for name in ("hour", "x"):
        columns[name][rng.random(count) < gaps] = np.nan
    when = pd.Series(days).where(rng.random(count) >= gaps)
    return pd.DataFrame({**columns, "when": when})


def rewards(frame, arms):
    """What each arm pays, so that every column matters."""
    hour, x = frame["hour"].fillna(3.0), frame["x"].fillna(-1.0)
    country = frame["country"].map({"de": 1.0, "fr": 0.2, "it": -0.7}).fillna(0.0)
    paid = [
        np.sin(hour * np.pi / 12) + country,
        0.8 * x + np.where(frame["turned_on"] == True, 0.6, -0.6),  # noqa: E712
        np.cos(np.radians(frame["tilt"])) * frame["load"] + 0.3 * frame["crew"].astype(float),
    ]
    return np.choose(arms, [np.asarray(each, dtype=float) for each in paid])


def learnt(rule="gap", kernel="gaussian", steps=90, arms=3, columns=COLUMNS, **settings):
    """A learner told the rewards of a table."""
    method = cg.Method(explorer=cg.METHODS["uniform"].explorer, recommender=RULES[rule][0])
    kernel = KERNELS[kernel] if isinstance(kernel, str) else kernel
    settings = {"kernel": kernel, "ridge": 0.05, "prior_mean": 0.1, **settings}
    learner = cg.Learner(arms, columns=columns, method=method, **settings)
    frame, chosen = table(steps), np.random.default_rng(1).integers(arms, size=steps)
    return learner.fit(frame[list(columns)], chosen, rewards(frame, chosen % 3))
