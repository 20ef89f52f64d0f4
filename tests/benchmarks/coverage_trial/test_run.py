"""The coverage trial as it is started, small."""

import json

import pytest

from coverage_trial.run import app
from tests.cli.test_policies import call


@pytest.mark.slow
def test_it_prints_what_failed_and_what_was_saved(tmp_path):
    small = ["--runs", "1", "--budget", "20", "--jobs", "1", "--out", tmp_path]
    printed = call(*small, "--json", app=app).stdout
    assert "NaN" not in printed  # which is not JSON
    found = json.loads(printed)
    assert len(found["coverage"]) == 5
    assert all(row["runs"] == 12 for row in found["coverage"])
    assert found["stopping"]["median_steps"] <= 20
    shown = call(*small, app=app).stdout
    assert "tight, δ = 0.01" in shown
    page = (tmp_path / "report.html").read_text()
    assert "How conservative" in page
    assert "python benchmarks/coverage_trial/run.py" in page
