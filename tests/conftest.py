import gc

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None)  # seconds are not what tests are about
settings.load_profile("suite")


@pytest.fixture
def rng():
    return np.random.default_rng(20260)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the thousands of tests out of the way of the garbage collector."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
