"""What the reports of the paper's studies say, against oracles."""

from __future__ import annotations

import numpy as np
import pytest

from contextgap.studies.experiments.paper import Workshop, reproduce
from contextgap.studies.report.studies import reproduction_report


@pytest.fixture(scope="module")
def found():
    sizes = {"hold_out": (60, 30), "evaluate": (90, 40), "repetitions": 3}
    found = reproduce("bench", Workshop(grid_size=2), **sizes)
    # As if the runs were as long as the published ones.
    found.main.results.records["checkpoint"] += 450
    return found


@pytest.fixture(scope="module")
def sections(found):
    return {section.title: section for section in reproduction_report(found).sections}


def test_the_ratio_to_uniform_has_a_paired_error_and_the_published_one(found, sections):
    records = found.main.results.records
    rows = records[(records.checkpoint == 500) & (records.scale == 1)]
    gap, uniform = (
        rows[rows.method == name].average_regret.to_numpy()
        for name in ("contextual-gap", "uniform")
    )
    error = (gap - uniform).std(ddof=1) / np.sqrt(3) / uniform.mean()
    expected = f"{gap.mean() / uniform.mean():.2f} ± {error:.2f} after 500"
    text = sections["By number of steps"].text
    assert expected in text
    assert text.endswith("published 0.34, 0.42, 0.38, 0.51.")


def test_the_whole_grid_says_how_lucky_tuning_was(found, sections):
    (_, table), *_ = sections["The whole grid"].tables
    for row in table.to_dict("records"):
        regret = found.over_grid[row["method"]].regret
        tuned = regret[found.main.tunings[row["method"]].best]
        assert row["tuned"] == tuned
        assert row["best in the grid"] == regret.min()
        assert row["median"] == np.median(regret)
        assert row["settings below the tuned"] == (regret < tuned).sum()


def test_ours_stand_beside_the_published_at_every_scale(sections):
    (_, table), *_ = sections["Ours beside the published"].tables
    assert set(table["scale"]) == {0.1, 0.5, 1.0, 2.0}
    assert set(table["steps"]) == {500}
