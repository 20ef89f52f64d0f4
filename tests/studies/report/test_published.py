from __future__ import annotations

import pytest

from contextgap.studies.experiments import PAPER_METHODS
from contextgap.studies.report import beside, published

from .conftest import make_records


def test_the_papers_six_methods_have_values():
    table = published("synthetic")
    assert set(table.method) == set(PAPER_METHODS)
    assert table.equals(published("sinusoids"))
    own = table[table.method == "contextual-gap"]
    assert own.average_simple_regret.tolist() == [0.053, 0.0122, 0.0048, 0.00215]


def test_the_laboratory_study_has_values_at_four_scales():
    ends = [published("bench", scale).set_index("method") for scale in (0.1, 0.5, 1.0, 2.0)]
    last = [table[table.exploration_steps == 2950].average_simple_regret for table in ends]
    assert [each["uniform"] for each in last] == [0.0445, 0.0355, 0.039, 0.065]
    assert [each["contextual-gap"] for each in last] == [0.0193, 0.0193, 0.02, 0.0231]
    assert published("bench", 3.0) is None
    assert published("sinusoids", 0.5) is None


def test_the_authors_code_evaluates_the_last_point_after_all_steps(records):
    paper, authors = (published("sinusoids", protocol=name) for name in ("paper", "authors"))
    assert sorted(set(paper.exploration_steps)) == [500, 1000, 1500, 1950]
    assert sorted(set(authors.exploration_steps)) == [500, 1000, 1500, 2000]
    assert set(beside(records, "sinusoids", "authors").steps) == {500, 1000, 1500}


def test_ours_stand_beside_the_published_values(records):
    table = beside(records, "sinusoids")
    names = ["method", "scale", "steps", "ours", "std", "published", "ratio"]
    assert table.columns.tolist() == names
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


def test_every_published_scale_is_compared():
    records = make_records(["uniform"], scales=(0.5, 0.7, 1.0), stops=(500,))
    table = beside(records.assign(study="bench"), "bench")
    assert table[["scale", "published"]].to_numpy().tolist() == [[0.5, 0.525], [1.0, 0.53]]
    own = records[records.scale == 0.5].average_regret.mean()
    assert table.ratio[0] == pytest.approx(own / 0.525)


def test_other_studies_have_no_published_values(records):
    assert published("wine") is None
    assert beside(records, "wine").empty
