"""Where a policy comes from: release, date and data."""

import io
import json
import zipfile
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import contextgap as cg
from contextgap.policy import Provenance


def learner(seed=0, rows=30, **settings):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 1))
    new = cg.Learner(2, kernel=cg.Gaussian(1.0), seed=0, **settings)
    return new.fit(x, rng.integers(2, size=rows), rng.normal(size=rows))


def reloaded(policy):
    file = io.BytesIO()
    policy.save(file)
    return cg.Policy.load(file)


def test_a_policy_says_who_made_it_when_and_from_what():
    before = datetime.now(UTC) - timedelta(seconds=1)
    policy = learner().freeze()
    made = policy.provenance
    assert made.version == cg.__version__
    assert before <= made.created <= datetime.now(UTC)
    assert len(made.data) == 64
    assert reloaded(policy).provenance == made
    assert "by contextgap" in policy._repr_html_()


def test_the_hash_is_that_of_the_data_alone():
    made = learner().freeze().provenance.data
    assert learner().freeze(fallback=1).provenance.data == made
    assert learner(ridge=1.0).freeze().provenance.data == made
    assert learner().freeze().with_columns(["x"]).provenance.data == made
    assert learner(seed=1).freeze().provenance.data != made
    assert learner(rows=31).freeze().provenance.data != made


def test_it_survives_what_leaves_data_out():
    policy = learner(rows=200).freeze()
    smaller = policy.compress(points=10)
    assert smaller.provenance == policy.provenance
    assert reloaded(smaller).provenance == policy.provenance
    many = learner(rows=400, points=16).freeze()
    assert reloaded(many).provenance.data == many.provenance.data


def with_header(policy, change):
    file, changed = io.BytesIO(), io.BytesIO()
    policy.save(file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "header.json":
                content = json.dumps(change(json.loads(content)))
            new.writestr(zipfile.ZipInfo(name), content)
    return changed


def test_files_of_earlier_releases_load_without():
    policy = learner().freeze()
    old = with_header(policy, lambda header: {k: v for k, v in header.items() if k != "provenance"})
    loaded = cg.Policy.load(old)
    assert loaded.provenance == Provenance(None, None, policy.provenance.data)
    np.testing.assert_array_equal(loaded.means([[0.3]]), policy.means([[0.3]]))


def test_a_sample_of_the_data_has_no_hash():
    """As in an earlier file of a compressed policy."""
    smaller = learner(rows=200).freeze().compress(points=10)
    old = with_header(smaller, lambda header: {**header, "provenance": None})
    assert cg.Policy.load(old).provenance.data is None


def test_nonsense_is_refused():
    for wrong in ({"version": 3}, {"created": "yesterday"}, ["0.2"]):
        file = with_header(learner().freeze(), lambda header, w=wrong: {**header, "provenance": w})
        with pytest.raises(cg.FileFormatError, match="damaged"):
            cg.Policy.load(file)
