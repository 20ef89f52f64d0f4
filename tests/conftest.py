import functools
import gc

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None)  # seconds are not what tests are about
settings.load_profile("suite")


@pytest.fixture
def rng():
    return np.random.default_rng(20260)


@pytest.fixture(scope="session", autouse=True)
def _commands_built_once():
    """Build the tree of commands once: it takes most of the time of a short command."""
    import typer.testing

    with pytest.MonkeyPatch.context() as patch:
        built = functools.cache(typer.main.get_command)
        patch.setattr(typer.testing, "_get_command", built, raising=False)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the thousands of tests out of the way of the garbage collector."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
