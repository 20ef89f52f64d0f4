"""The user's own explorers, kernels and problems, named on the command line."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

import contextgap as cg
from contextgap.studies.experiments import Study, compare
from tests.cli.test_policies import call

SMALL = ["--explore", "40", "--evaluate", "20", "--json"]
SOURCE = """
from dataclasses import dataclass
import numpy as np
import contextgap as cg

def chosen(belief):
    return PICK

@dataclass(frozen=True)
class Mine(cg.explorers.Explorer):
    def pick(self, moment):
        return int(chosen(moment.belief))

@dataclass(frozen=True)
class Lines(cg.problems.Maker):
    def sample(self, n=None, seed=None):
        x = np.random.default_rng(seed).uniform(size=(n or 150, 2))
        return cg.problems.Problem(name="lines", contexts=x, rewards=x)

kernel = cg.Matern(0.4, 1.5)
problem = Lines().sample(130, seed=1)
method = cg.Method(explorer=Mine(), recommender=cg.SmallestGap())
"""
WIDEST, FIRST = "belief.half_width.argmax()", "0"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    (tmp_path / "own_parts.py").write_text(SOURCE.replace("PICK", WIDEST))
    yield tmp_path
    sys.modules.pop("own_parts", None)


def test_run_takes_them_by_name(folder, undrawn):
    own = ["--methods", "own_parts:Mine,uniform", "--kernel", "own_parts:kernel"]
    shown = call("run", "own_parts:Lines", *own, *SMALL, "--jobs", "1", "--out", "out")
    found = json.loads(shown.stdout)
    names = {row["method"] for row in found["results"]}
    assert names == {"own_parts:Mine", "uniform", "full information", "best single arm"}
    policy = cg.Policy.load(found["policy"])
    assert policy.kernel == cg.Matern(0.4, 1.5)
    assert policy.method.name == "Mine+HighestMean"
    assert "Matern(" in (folder / "out" / "report.html").read_text()


def compared(folder, *more):
    """Compare in a process of its own, as a user does: nothing is imported beforehand."""
    script = (
        "import sys; sys.path.remove(''); from contextgap.studies.report import studies\n"
        "studies.compare_report = studies.write = lambda *given: None  # drawing takes long\n"
        "from contextgap.cli import main; main()"
    )
    command = [sys.executable, "-c", script, "compare", "own_parts:problem", *SMALL, *more]
    command += ["--grid", "2"]
    command += ["--methods", "own_parts:Mine,own_parts:method", "--repetitions", "1"]
    done = subprocess.run(
        [*command, "--out", "out"], cwd=folder, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["results"]


def parts(folder):
    return len(list((folder / "out" / "parts").rglob("*.json")))


def test_compare_finds_them_in_its_workers_and_knows_other_code(folder):
    first = compared(folder, "--jobs", "2")
    made = parts(folder)
    (folder / "own_parts.py").write_text(SOURCE.replace("PICK", FIRST))  # in a helper
    assert compared(folder, "--jobs", "1") != first
    assert parts(folder) == 2 * made


def test_python_takes_the_same_names(folder):
    problem = cg.problems.Sinusoids(n_arms=3).sample(90, seed=0)
    study = Study.of(problem, hold_out=(20, 10), evaluate=(30, 20), repetitions=1)
    named = compare(study, methods=["own_parts:Mine"], kernel="own_parts:kernel", ridges=[0.1])
    from own_parts import Mine

    given = compare(study, methods=[Mine()], kernel=cg.Matern(0.4, 1.5), ridges=[0.1])
    assert set(given.method) == {"Mine+HighestMean"}
    pd.testing.assert_frame_equal(named.drop(columns="method"), given.drop(columns="method"))
    with pytest.raises(ValueError, match="bandwidths are a Gaussian kernel's"):
        compare(study, kernel="own_parts:kernel", bandwidths=[0.1])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--methods", "own_parts:Yours"], "own_parts:Yours: own_parts has no 'Yours'"),
        (["--methods", "gone:Mine"], "gone:Mine: there is no module gone"),
        (["--methods", "own_parts:kernel"], "method own_parts:kernel must be a Method"),
        (["--kernel", "own_parts:Mine"], "kernel own_parts:Mine must be a Kernel"),
        (["--kernel", "rough"], "'rough' must have the form package.module:name"),
        (["--kernel", "own_parts:kernel", "--bandwidth", "1"], "leave one of the two out"),
        (["own_parts:kernel"], "problem own_parts:kernel must be a Problem"),
        (["own_parts:problem", "--rows", "131"], "at most the 130 rows of 'lines'"),
    ],
)
def test_mistakes_are_said_in_one_line(folder, arguments, says):
    shown = call("run", *arguments, "--jobs", "1", code=2)
    assert says in shown.stderr
    assert shown.stderr.count("\n") == 1
