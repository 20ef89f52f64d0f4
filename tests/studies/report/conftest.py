from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from contextgap.studies.experiments import PAPER_METHODS
from contextgap.studies.report import (
    Origin,
    Report,
    Section,
    beside,
    pick_histogram,
    regret_curves,
    write_report,
)

HOSTILE = "<script>alert('x')</script>\"$"


def make_records(methods=PAPER_METHODS, seeds=3, scales=(1.0,), stops=(500, 1000, 1500, 1950)):
    rng = np.random.default_rng(7)
    rows = [
        ("sinusoids", method, scale, seed, stop, rng.uniform(0.5, 2) / stop, 1.0 + rng.uniform())
        for scale in scales
        for method in methods
        for seed in range(seeds)
        for stop in stops
    ]
    columns = ["study", "method", "scale", "seed", "checkpoint", "average_regret", "worst_regret"]
    return pd.DataFrame(rows, columns=columns)


def make_picks(methods=PAPER_METHODS, seeds=3, arms=20):
    rng = np.random.default_rng(8)
    rows = [
        ("sinusoids", method, 1.0, seed, rank, int(rng.integers(1, 100)))
        for method in methods
        for seed in range(seeds)
        for rank in range(1, arms + 1)
    ]
    return pd.DataFrame(rows, columns=["study", "method", "scale", "seed", "rank", "count"])


def make_report():
    records = make_records([*make_records().method.unique(), HOSTILE])
    timings = pd.DataFrame({"method": ["uniform", "uniform", HOSTILE], "seconds": [1.0, 2.0, 4.0]})
    return Report(
        title=f"A study of {HOSTILE}",
        summary=f"First {HOSTILE}.\n\nSecond, $title.",
        sections=[
            Section(
                "Curves",
                "What it cost.",
                [("Average regret", regret_curves(records)), (HOSTILE, regret_curves(records))],
                [("Beside", beside(records, "sinusoids"))],
            ),
            Section(HOSTILE, "", [("Picks", pick_histogram(make_picks()))], [("No", records[:0])]),
        ],
        settings={HOSTILE: HOSTILE, "scales": (0.1, np.float64(1)), "grid": {"ridges": [1e-4]}},
        seeds=range(10),
        timings=timings,
        origin=Origin("run 'x y'", "today", ["records 1.csv"], {"tuning": 3.0, "drawing": 1.0}),
    )


@pytest.fixture(scope="session")
def report_file(tmp_path_factory):
    return write_report(make_report(), tmp_path_factory.mktemp("page") / "new" / "report.html")


@pytest.fixture
def records():
    return make_records()


@pytest.fixture
def picks():
    return make_picks()
