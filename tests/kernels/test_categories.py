"""Codes of categories give the values of one column per level, √½ at the level and 0 elsewhere."""

from dataclasses import replace

import numpy as np
import pandas
import pytest

import contextgap as cg
from contextgap.base.components import build
from contextgap.kernels import Gaussian, Linear, Matern
from contextgap.kernels.categories import deviations
from contextgap.tables.contexts import far_beyond

RNG = np.random.default_rng(7)
LEVELS = (3, 5)
NUMBERS = 2


def rows(count):
    numbers = RNG.normal(size=(count, NUMBERS))
    return np.column_stack([numbers, *(RNG.integers(n, size=count) for n in LEVELS)])


def expanded(contexts):
    corners = [
        np.sqrt(0.5) * (contexts[:, [NUMBERS + place]] == np.arange(count))
        for place, count in enumerate(LEVELS)
    ]
    return np.column_stack([contexts[:, :NUMBERS], *corners])


def spread_out(values):
    return np.repeat(values, [1, 1, *LEVELS])


EACH = (0.7, 1.3, 0.4, 2.0)
CENTRE = (0.3, -0.2, 0.0, 0.0)


@pytest.mark.parametrize("count", [5, 200])  # few pairs, and enough for a matrix product
@pytest.mark.parametrize(
    ("kernel", "of_columns"),
    [
        (Gaussian(EACH, categories=2), Gaussian(spread_out(EACH))),
        (Gaussian(0.8, categories=2), Gaussian(0.8)),
        (Matern(EACH, 1.5, categories=2), Matern(spread_out(EACH), 1.5)),
        (Matern(0.8, categories=2), Matern(0.8)),
        (
            Linear(unit=EACH, centre=CENTRE, categories=2),
            Linear(unit=spread_out(EACH), centre=spread_out(CENTRE)),
        ),
        (Linear(categories=2), Linear()),
    ],
)
def test_codes_are_columns_of_levels(kernel, of_columns, count):
    left, right = rows(count), rows(count)
    wanted = of_columns(expanded(left), expanded(right))
    np.testing.assert_allclose(kernel(left, right), wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        kernel.diagonal(left), of_columns.diagonal(expanded(left)), rtol=1e-12
    )
    assert np.linalg.eigvalsh(kernel(left, left)).min() > -1e-9


@pytest.mark.parametrize("kernel", [Gaussian(0.5, categories=2), Matern(0.5, categories=2)])
def test_contexts_may_be_codes_alone(kernel):
    codes = rows(200)[:, NUMBERS:]
    differ = (codes[:, None] != codes[None]).sum(axis=2)
    plain = replace(kernel, categories=0)
    wanted = plain(np.sqrt(differ.ravel())[:, None], np.zeros((1, 1))).reshape(differ.shape)
    np.testing.assert_allclose(kernel(codes, codes), wanted, rtol=1e-12)


def test_a_level_never_met_is_as_far_from_all_levels():
    met = np.array([[0.0, 0], [0.0, 1], [0.0, 2]])
    values = Gaussian((1.0, 0.5), categories=1)(np.array([[0.0, -1.0]]), met)
    np.testing.assert_allclose(values, np.exp(-2.0))


def test_descriptions_name_categories_where_there_are_any():
    assert "categories" not in Gaussian(1.0).describe()
    for kernel in (Gaussian(1.0), Gaussian(1.0, categories=2), Linear(categories=1)):
        assert build(kernel.describe()) == kernel


def test_more_categories_than_numbers_are_refused():
    with pytest.raises(ValueError, match=r"categories must be at most the 2 numbers .* got 3"):
        Gaussian(1.0, categories=3).check_dimension(2)
    with pytest.raises(ValueError, match="categories"):
        Matern(1.0, categories=-1)


@pytest.mark.parametrize("rare", [0.5, 0.1, 0.01])
def test_levels_and_gaps_are_as_far_apart_however_rare_they_are(rare):
    rng = np.random.default_rng(0)
    seldom = rng.random(400) < rare
    table = pandas.DataFrame(
        {
            "level": np.where(seldom, "a", rng.choice(["b", "c"], 400)),
            "x": np.where(rng.random(400) < rare, np.nan, rng.normal(size=400)),
        }
    )
    bandwidth = np.array(cg.Gaussian.from_contexts(table).bandwidth)
    assert len(bandwidth) == 3  # x, whether it is missing, and the level
    np.testing.assert_allclose(bandwidth[1:], np.sqrt(3 * 0.5))
    filled = table["x"].fillna(table["x"].median())
    assert bandwidth[0] == pytest.approx(np.sqrt(3) * filled.std(ddof=0))
    same = cg.Gaussian.from_contexts(table.assign(level="a")).bandwidth
    assert same[2] == pytest.approx(np.sqrt(3))  # constant


def test_values_far_beyond_all_others_do_not_count_in_deviations(rng):
    columns = rng.normal(size=(400, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 7.0]
    usual = deviations(columns, None)
    assert far_beyond(columns) is None
    spoilt = columns.copy()
    spoilt[:20, 1] = -99999.0
    low, high = far_beyond(spoilt)
    assert np.isinf(low[[0, 2]]).all()
    assert -99999 < low[1] < columns[:, 1].min() < columns[:, 1].max() < high[1]
    np.testing.assert_allclose(deviations(spoilt, None), usual, rtol=0.05)
    np.testing.assert_allclose(deviations(spoilt, None, far=True), np.sqrt(3) * spoilt.std(axis=0))
    assert far_beyond(np.exp(2 * rng.normal(size=(1000, 4)))) is None  # heavy tails are usual
    assert far_beyond(np.eye(100)) is None  # most values the same, as in a rare flag
