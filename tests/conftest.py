import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None)  # seconds are not what tests are about
settings.load_profile("suite")


@pytest.fixture
def rng():
    return np.random.default_rng(20260)
