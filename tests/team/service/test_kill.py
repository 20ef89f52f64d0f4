"""A service that is killed under load loses nothing that it acknowledged."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.mark.slow
def test_killed_again_and_again(place, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    script = importlib.import_module("kill")
    report = script.besiege(place.database, kills=3, clients=8, answers=30)
    assert report.kills == 3
    assert report.acknowledged["tell"] > 0
    assert report.sound, report
