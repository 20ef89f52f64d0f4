"""Pilots: what they promise of an exploration, checked on simulated ones."""

import numpy as np
import pandas as pd
import pytest

import contextgap as cg
from contextgap.studies.experiments.paper import budget_for, pilot

CONTEXTS = np.random.default_rng(0).uniform(0, 1, (150, 2))
SMALL = {"n_arms": 3, "kernel": cg.Gaussian(0.5), "noise": 0.1, "budget": 80, "repetitions": 4}


def test_regret_falls_with_the_budget():
    table = pilot(CONTEXTS, **SMALL)
    assert table.groupby("seed").size().tolist() == [40] * 4
    means = table.groupby("checkpoint")["average_regret"].mean()
    assert means.iloc[-1] < 0.3 * means.iloc[0]


def test_units_of_reward_and_kernel_do_not_matter():
    plain = pilot(CONTEXTS, **SMALL)
    kernel = 25.0 * SMALL["kernel"]
    scaled = pilot(CONTEXTS, **{**SMALL, "kernel": kernel, "noise": 10.0}, reward_scale=100.0)
    np.testing.assert_allclose(
        scaled["average_regret"], 100 * plain["average_regret"], rtol=1e-4, atol=1e-6
    )


def test_draws_have_the_spread_asked_for():
    wide = pilot(CONTEXTS, **{**SMALL, "repetitions": 30, "budget": 3}, method="uniform")
    first = wide[wide["checkpoint"] == 1]["average_regret"].mean()
    # Picking blindly misses the expected maximum of three standard normals, 0.846.
    assert first == pytest.approx(0.846, abs=0.25)


def test_the_same_seed_gives_the_same_pilot():
    pd.testing.assert_frame_equal(pilot(CONTEXTS, **SMALL), pilot(CONTEXTS, **SMALL))


def test_budget_for_a_tolerance():
    table = pd.DataFrame(
        {
            "seed": [0, 0, 0, 0, 1, 1, 1, 1],
            "checkpoint": [10, 20, 30, 40] * 2,
            "average_regret": [0.1, 0.5, 0.1, 0.1, 0.1, 0.4, 0.4, 0.1],
        }
    )
    assert budget_for(table, 0.2, 0.5) == 30  # not 10, which was luck
    assert budget_for(table, 0.2, 1.0) == 40
    assert budget_for(table, 0.01, 0.5) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_arms": 0}, "n_arms must be at least 1"),
        ({"budget": 0}, "budget must be at least 1"),
        ({"noise": -1.0}, "noise must be"),
        ({"kernel": cg.Gaussian((1.0, 1.0, 1.0))}, "bandwidth has 3 entries"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(ValueError, match=message):
        pilot(CONTEXTS, **{**SMALL, **change})
