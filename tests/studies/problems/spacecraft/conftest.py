import pytest

from contextgap.studies.problems.spacecraft import TLE, Spacecraft, simulate


@pytest.fixture(scope="session")
def flown():
    """Five orbits, simulated once."""
    return simulate(TLE, 3000, 10.0, seed=0)


@pytest.fixture(scope="session")
def flight():
    return Spacecraft().sample(1200, seed=0)
