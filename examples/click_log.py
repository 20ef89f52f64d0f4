"""A click log as it is, from a CSV file to C: text, hours, empty cells, ads that were not there."""

from pathlib import Path

import numpy as np
import pandas as pd

import contextgap as cg

ADS = ("discount", "novelty", "brand")


def make_log(path: Path, visits: int = 1500) -> None:
    """Write the data set: which ad was shown to whom, and whether it was clicked."""
    rng = np.random.default_rng(3)
    country = rng.choice(["DE", "FR", "IT", "PT"], p=[0.4, 0.3, 0.2, 0.1], size=visits)
    hour, age = rng.integers(24, size=visits), rng.normal(42, 12, size=visits).round()
    logged_in = rng.random(visits) < 0.7  # the age of others is not known
    evening = 0.5 - 0.5 * np.cos(2 * np.pi * (hour - 8) / 24)
    chance = np.column_stack(
        [
            0.05 + 0.3 * (country == "DE") * ~logged_in,
            0.05 + 0.3 * evening * (age < 40),
            np.full(visits, 0.12),
        ]
    )
    there = np.column_stack([rng.random(visits) < 0.8, np.ones((visits, 2), dtype=bool)])
    shown = (rng.random((visits, 3)) * there).argmax(axis=1)
    log = pd.DataFrame(
        {
            "visit": [f"v{number:06}" for number in range(visits)],
            "country": country,
            "hour": hour,
            "age": np.where(logged_in, age, np.nan),
            "there": ["|".join(np.array(ADS)[row]) for row in there],
            "ad": np.array(ADS)[shown],
            "clicked": rng.random(visits) < chance[np.arange(visits), shown],
        }
    )
    log.to_csv(path, index=False)


make_log(Path("clicks.csv"))
log = pd.read_csv("clicks.csv")
contexts = log[["country", "hour", "age"]]
columns = cg.Columns.from_table(contexts, hour=cg.Cyclic(24))
learner = cg.Learner(ADS, columns=columns, seed=0)
learner.fit(contexts, log["ad"], log["clicked"], eligible=log["there"].str.split("|"))
print(learner.columns)
print(learner.tuning.reason)
print(learner.score(), end="\n\n")

policy = learner.freeze()
visit = {"country": "DE", "hour": 21, "age": None}
print("best first:", *(ranked.arm for ranked in policy.rank(visit)))
print("without the discount:", policy.recommend(visit, arms=["novelty", "brand"]))
print("in a country never met:", policy.decide({**visit, "country": "SE"}).std.round(3), "std")
print("here:", policy.decide(visit).std.round(3), "std")
export = policy.compress(agreement=0.95).to_c("clicks", prefix="clicks")
print(f'{export.header}: {export.rom_bytes} bytes of constants, clicks_encode_country("DE")')
