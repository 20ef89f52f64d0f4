"""Digests of the user's own code."""

import os
import subprocess
import sys
import types

import pytest

from contextgap.methods.explorers import Uniform
from contextgap.studies.experiments.sources import source_digest

SOURCE = """
from dataclasses import dataclass
from functools import cached_property
import numpy as np
import contextgap as cg

LEVEL = 2
WEIGHTS = np.array([1.0, 2.0])

def score(belief):
    return helper(belief) + LEVEL

def helper(belief):
    return belief.mean @ WEIGHTS

class Base(cg.explorers.Explorer):
    share = 0.5
    def pick(self, moment):
        return int(score(moment.belief).argmax())

@dataclass(frozen=True)
class Mine(Base):
    known: tuple = ("a", "b")
    @cached_property
    def often(self):
        return 7
    def other(self, word):
        return word in {"left", "right", "middle"}
"""


def digest(source, name="own_source"):
    module = types.ModuleType(name)
    exec(source, module.__dict__)
    return source_digest(module.Mine)


def test_comments_and_the_library_itself_do_not_count():
    assert source_digest(Uniform) is None
    assert digest(SOURCE) == digest(SOURCE)
    assert digest(SOURCE) == digest(SOURCE.replace("LEVEL = 2", "LEVEL = 2  # a comment\n\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("argmax", "argmin"),
        ("helper(belief) + LEVEL", "helper(belief) - LEVEL"),
        ("LEVEL = 2", "LEVEL = 3"),
        ("[1.0, 2.0]", "[1.0, 2.5]"),
        ("belief.mean", "belief.upper"),
        ("share = 0.5", "share = 0.6"),
        ("return 7", "return 8"),
        ('"left", ', ""),
    ],
)
def test_every_change_counts_helpers_constants_and_parents_included(old, new):
    assert digest(SOURCE) != digest(SOURCE.replace(old, new))


def test_the_same_in_every_process():
    code = "from tests.studies.experiments.test_sources import *; print(digest(SOURCE))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


def test_functions_of_a_module_of_ones_own_count(monkeypatch):
    def with_helper(body):
        helpers = types.ModuleType("own_helpers")
        exec(f"def score(belief):\n    return {body}\n", helpers.__dict__)
        monkeypatch.setitem(sys.modules, "own_helpers", helpers)
        helpers.__file__ = "/home/me/own_helpers.py"
        module = types.ModuleType("own_source")
        exec(
            "import contextgap as cg\nimport own_helpers\n"
            "class Mine(cg.explorers.Explorer):\n"
            "    def pick(self, moment):\n        return own_helpers.score(moment.belief)\n",
            module.__dict__,
        )
        return source_digest(module.Mine)

    assert with_helper("0") == with_helper("0")
    assert with_helper("0") != with_helper("1")


def test_recursion_ends():
    source = SOURCE.replace("return helper(belief) + LEVEL", "return score(belief) or Mine()")
    assert digest(source) == digest(source)
