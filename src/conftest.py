"""The objects that examples in docstrings use, as ``docs/api.md`` makes them."""

import copy
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ |= {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let MLflow, and nothing else, use what pandas deprecates."""
    for item in items:
        if item.name.startswith("contextgap.mlflow"):
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def blocks() -> list[str]:
    """Return the code that sections of the reference begin with."""
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


@pytest.fixture(scope="session")
def shared(blocks: list[str]) -> dict[str, Any]:
    """Run the code that the reference begins with."""
    made: dict[str, Any] = {}
    exec(blocks[0], made)
    return {name: made[name] for name in ("np", "cg", "contexts", "measure", "learner", "policy")}


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve campaigns on this machine; return what ``contextgap serve`` prints."""
    database = tmp_path_factory.mktemp("service") / "bench.db"
    command = [sys.executable, "-m", "contextgap", "serve", "--port", "0", "--no-tokens"]
    command += ["--database", str(database)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        line = process.stdout.readline() if process.stdout else ""
        yield re.findall(r"http://[^\s;]+", line)[0]
        process.terminate()


# Of the other blocks of code, the one that examples of a package use.
BLOCKS = {
    "contextgap.sklearn": 1,
    "contextgap.team.campaign": 2,
    "contextgap.studies.theory": 3,
    "contextgap.studies.": 4,
}


@pytest.fixture(autouse=True)
def _prepared(
    request: pytest.FixtureRequest,
    doctest_namespace: dict[str, Any],
    blocks: list[str],
    shared: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Give every example its own copies, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    doctest_namespace.clear()
    doctest_namespace.update(shared, learner=copy.deepcopy(shared["learner"]))
    name = request.node.name
    for room in [room for room in BLOCKS if name.startswith(room)][:1]:
        exec(blocks[BLOCKS[room]], doctest_namespace)
    if name.startswith("contextgap.team.client"):
        doctest_namespace["address"] = request.getfixturevalue("address")
    if name.startswith("contextgap.mlflow"):
        import mlflow

        mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
