"""A service that is killed under load loses nothing that it acknowledged."""

import importlib.util
from pathlib import Path

from tests.campaign.conftest import place, server  # noqa: F401  # fixtures

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill.py"


def test_killed_again_and_again(place):  # noqa: F811  # the fixture
    spec = importlib.util.spec_from_file_location("kill", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    report = script.besiege(place.database, kills=3, clients=8, up=0.7)
    assert report.kills == 3
    assert report.acknowledged["tell"] > 0
    assert report.sound, report
