from __future__ import annotations

import pytest

from contextgap.experiments import PAPER_METHODS
from contextgap.report import beside, published

from .conftest import make_records


def test_the_papers_six_methods_have_values():
    table = published("synthetic")
    assert set(table.method) == set(PAPER_METHODS)
    assert table.equals(published("sinusoids"))
    own = table[table.method == "contextual-gap"]
    assert own.average_simple_regret.tolist() == [0.053, 0.0122, 0.0048, 0.00215]


def test_ours_stand_beside_the_published_values(records):
    table = beside(records, "sinusoids")
    assert table.columns.tolist() == ["method", "steps", "ours", "std", "published", "ratio"]
    assert len(table) == 24
    row = table[(table.method == "uniform") & (table.steps == 1950)].iloc[0]
    own = records[(records.method == "uniform") & (records.checkpoint == 1950)].average_regret
    assert row.ours == pytest.approx(own.mean())
    assert row["std"] == pytest.approx(own.std())
    assert row.ratio == pytest.approx(own.mean() / 0.037)


def test_only_the_published_scale_steps_and_methods_are_compared():
    records = make_records(["uniform", "mine"], scales=(0.5, 1.0), stops=(500, 600))
    table = beside(records, "sinusoids")
    assert table[["method", "steps"]].to_numpy().tolist() == [["uniform", 500]]
    own = records[
        (records.method == "uniform") & (records.scale == 1) & (records.checkpoint == 500)
    ]
    assert table.ours[0] == pytest.approx(own.average_regret.mean())


def test_other_studies_have_no_published_values(records):
    assert published("wine") is None
    assert beside(records, "wine").empty
