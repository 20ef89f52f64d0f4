"""Columns that are probably not context are named in a warning, others are not."""

import warnings

import numpy as np
import pandas
import pytest

import contextgap as cg

RNG = np.random.default_rng(5)
COUNT = 60
REWARDS = RNG.integers(2, size=COUNT).astype(float)
HARMLESS = {
    "x": RNG.normal(size=COUNT),
    "country": RNG.choice(["DE", "FR"], size=COUNT),
    "day": pandas.date_range("2024-01-01", periods=COUNT, freq="h"),
    "written": [f"2024-01-{1 + place % 28:02}T{place:02}" for place in range(24)]
    + ["2024-02-01"] * 36,
}


def told(**columns):
    table = pandas.DataFrame({**HARMLESS, **columns})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel = cg.Gaussian.from_contexts(table)  # so that nothing is tuned
        cg.Learner(2, kernel=kernel).fit(table, np.arange(COUNT) % 2, REWARDS)
    return [str(each.message) for each in caught], {each.filename for each in caught}


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ([f"user {place}" for place in range(COUNT)], "as an id has"),
        (np.arange(COUNT) + 17, "numbers the rows"),
        (np.full(COUNT, 3.0), "same value in every row"),
        (["DE"] * COUNT, "same value in every row"),
        (3 * REWARDS - 1, "predicts the reward perfectly"),
        (np.where(REWARDS == 1, "won", "lost"), "predicts the reward perfectly"),
    ],
)
def test_what_is_doubtful_is_named(column, text):
    messages, files = told(odd=column)
    assert len(messages) == 1
    assert "'odd'" in messages[0]
    assert text in messages[0]
    assert files == {__file__}


def test_what_is_usual_is_not():
    assert told() == ([], set())
    assert told(noisy=REWARDS + 0.01 * RNG.normal(size=COUNT)) == ([], set())


def test_nothing_changes_where_a_warning_is_an_error():
    learner = cg.Learner(2)
    table = pandas.DataFrame({"x": np.zeros(COUNT)})
    with pytest.raises(UserWarning, match="same value"):
        learner.fit(table, np.arange(COUNT) % 2, REWARDS)
    assert learner.columns is None
    assert "0 observations" in repr(learner)
