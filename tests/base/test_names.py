"""Things named as "package.module:name"."""

import sys

import numpy as np
import pytest

import contextgap as cg
from contextgap.base import components
from contextgap.methods.explorers import Uniform
from contextgap.methods.method import read_method

SOURCE = """
from dataclasses import dataclass
import contextgap as cg

@dataclass(frozen=True)
class Mine(cg.explorers.Explorer):
    def pick(self, moment):
        return int(moment.belief.half_width.argmax())

@dataclass(frozen=True)
class Demanding(cg.explorers.Explorer):
    taste: float
    def pick(self, moment):
        return 0

class Kernels:
    rough = cg.Matern(2.0, 0.5)

mine = Demanding(1.0)
method = cg.Method(explorer=Mine(), recommender=cg.SmallestGap())
number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a package of the user's, which is the current one and not on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    package = tmp_path / "named_by_path"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text(SOURCE)
    (package / "broken.py").write_text("import named_by_path.nowhere\n")
    (package / "loud.py").write_text("raise RuntimeError('no\\nway')\n")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("named_by_path")]:
        del sys.modules[name]


def test_the_current_folder_is_importable_and_stays_so(folder):
    assert components.load("named_by_path.parts:number") == 3
    assert sys.path[-1] == str(folder)  # last: it shadows nothing
    assert components.load("named_by_path.parts:Kernels.rough") == cg.Matern(2.0, 0.5)
    assert sys.path.count(str(folder)) == 1


@pytest.mark.parametrize(
    ("path", "error", "says"),
    [
        ("named_by_path.gone:Mine", ImportError, "there is no module named_by_path.gone"),
        ("nowhere_at_all:Mine", ImportError, "there is no module nowhere_at_all"),
        ("named_by_path.parts:Mein", ImportError, "has no 'Mein'; did you mean Mine?"),
        ("named_by_path.parts:Kernels.smooth", ImportError, "has no 'smooth'"),
        ("named_by_path.broken:Mine", ImportError, "failed: ModuleNotFoundError: No module named"),
        ("named_by_path.loud:Mine", ImportError, "loud failed: RuntimeError: no way"),
        ("named_by_path.parts", ValueError, "must have the form package.module:name"),
        ("a:b:c", ValueError, "must have the form package.module:name"),
        ("named_by_path.parts:", ValueError, "must have the form package.module:name"),
    ],
)
def test_errors_are_one_line_that_names_the_path(folder, path, error, says):
    before = list(sys.path)
    with pytest.raises(error) as caught:
        components.load(path)
    message = str(caught.value)
    assert path in message
    assert says in message
    assert "\n" not in message
    if "nowhere" in path:
        assert sys.path == before


def test_methods_by_path(folder):
    mine = read_method("named_by_path.parts:Mine")
    assert mine.name == "Mine+HighestMean"
    assert read_method("named_by_path.parts:mine").explorer.taste == 1.0
    assert read_method("named_by_path.parts:method").recommender == cg.SmallestGap()
    assert read_method(Uniform()) == cg.METHODS["uniform"]
    learner = cg.Learner(3, kernel=cg.Gaussian(1.0), method="named_by_path.parts:Mine")
    for context in np.zeros((3, 1)):
        learner.tell(context, learner.ask(context), 0.0)
    assert learner.ask([0.0]) == 0
    learner.save(folder / "mine.cgap")
    assert cg.Learner.load(folder / "mine.cgap").method == learner.method


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("named_by_path.parts:Demanding", r"Demanding\(\) cannot be made without arguments"),
        ("named_by_path.parts:number", "method named_by_path.parts:number must be a Method.*got 3"),
        ("named_by_path.parts:Kernels", "must be a Method.*got the class Kernels"),
    ],
)
def test_what_is_no_method_is_said(folder, path, says):
    with pytest.raises(TypeError, match=says):
        read_method(path)
