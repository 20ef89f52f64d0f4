"""The package as a whole: what it exports, what importing it loads, what its docstrings say."""

import ast
import collections
import importlib.metadata
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

import contextgap as cg

ROOT = Path(__file__).parents[1]


def modules():
    for found in pkgutil.walk_packages(cg.__path__, "contextgap."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def documented():
    """Every public class, function and method defined in the package."""
    for module in modules():
        for name, thing in vars(module).items():
            mine = getattr(thing, "__module__", None) == module.__name__
            if name.startswith("_") or not mine or not callable(thing):
                continue
            yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                for inner, method in vars(thing).items():
                    method = getattr(method, "__func__", method)
                    if not inner.startswith("_") and inspect.isfunction(method):
                        yield f"{module.__name__}.{name}.{inner}", method


def test_documented_parameters_are_the_real_ones():
    wrong = {}
    for name, thing in documented():
        parse = ClassDoc if inspect.isclass(thing) else FunctionDoc
        if parameters := parse(thing)["Parameters"]:
            entries = ",".join(entry.name for entry in parameters)
            said = [part.strip().lstrip("*") for part in entries.split(",")]
            real = [p for p in inspect.signature(thing).parameters if p not in ("self", "cls", "_")]
            if said != real:
                wrong[name] = said, real
    assert not wrong


def test_public_packages_have_short_paths():
    """They name the very modules of the tree, submodules included, whichever is imported first."""
    code = """
import contextgap.experiments.tune as short
import contextgap.studies.experiments.tune as long
import contextgap.problems, contextgap.campaign, contextgap.widths, contextgap.plot
import contextgap, contextgap.studies.problems
assert short is long and contextgap.problems is contextgap.studies.problems
assert contextgap.studies.problems.__spec__.name == "contextgap.studies.problems"
assert contextgap.widths.Width is contextgap.PosteriorWidth.__mro__[1]
try:
    import contextgap.nonsense
except ModuleNotFoundError:
    print("no such module")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "no such module\n"


def test_everything_exported_exists():
    for name in cg.__all__:
        assert getattr(cg, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cg.nonsense


def test_importing_loads_no_extras():
    code = "import sys, contextgap; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {line.partition(".")[0] for line in done.stdout.split()}
    heavy = {"matplotlib", "pandas", "polars", "sklearn", "pyarrow", "typer", "rich", "joblib"}
    assert not loaded & heavy
    assert "scipy.spatial" not in done.stdout.split()


def test_rooms_load_when_first_used():
    assert cg.problems.Sinusoids
    assert cg.experiments.run
    assert cg.plot.decision
    assert cg.testing.check_explorer


def test_rooms_are_listed_before_they_are_loaded():
    code = """
import sys
for extra in ("sqlalchemy", "httpx", "matplotlib"):
    sys.modules[extra] = None
import contextgap, inspect
names = [name for name, _ in inspect.getmembers(contextgap)]  # as help() does
print(" ".join(names))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"problems", "plot", "learn_from"} <= set(done.stdout.split())
    assert not {"Campaign", "client", "report"} & set(done.stdout.split())
    assert {"Campaign", "client", "report"} <= set(dir(cg))


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        (
            "matplotlib",
            "contextgap.plot.decision(contextgap.Learner(2).decide([0.0]))",
            "plot",
        ),
        ("matplotlib", "contextgap.report", "study"),
        ("fastapi", "import contextgap.service", "serve"),
        ("uvicorn", "import contextgap.service", "serve"),
        ("sqlalchemy", "contextgap.Campaign", "campaign"),
        ("httpx", "contextgap.client", "client"),
    ],
)
def test_what_lacks_its_extra_names_it(package, code, extra):
    lines = f"import sys\nsys.modules[{package!r}] = None\nimport contextgap\n"
    done = subprocess.run(
        [sys.executable, "-c", lines + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert package in said
    assert f"pip install 'contextgap[{extra}]' brings it" in said


def test_only_what_is_public_is_listed():
    listed = {name for name in dir(cg) if not name.startswith("__")}
    assert listed == {*cg.__all__, *cg._LAZY, "Campaign", "learn_from"}
    assert {"__version__", "__doc__", "__all__", "__path__"} <= set(dir(cg))
    assert all(getattr(cg, name) is not None for name in listed)


def test_type_checkers_are_shown_every_room():
    """``make check`` has them read that script."""
    script = (ROOT / "tests" / "typed" / "rooms.py").read_text()
    assert set(re.findall(r"cg\.(\w+)", script)) == {
        *cg._LAZY,
        "Campaign",
        "learn_from",
        "nonsense",
    }


def test_the_version_is_said_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert ROOT / project["tool"]["hatch"]["version"]["path"] == Path(cg.__file__)
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", cg.__version__)
    assert importlib.metadata.version("contextgap") == cg.__version__


def test_the_conda_recipe_needs_what_the_project_needs():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needs = project["project"]
    assert recipe["context"]["version"] == cg.__version__
    assert recipe["about"]["license"] == needs["license"]
    assert recipe["about"]["summary"] == needs["description"]
    wanted = [f"python {needs['requires-python']}"]
    wanted += [each.replace(">=", " >=") for each in needs["dependencies"]]
    assert recipe["requirements"]["run"] == wanted
    assert (
        project["build-system"]["requires"][0].replace(">=", " >=")
        in (recipe["requirements"]["host"])
    )


# Public in spite of their names: named tuples, notebooks, the standard library.
NOT_PRIVATE = {"_asdict", "_fields", "_make", "_replace", "_repr_html_", "_exit", "_getframe"}


def is_own(value):
    """Whether an attribute is read from ``self``, ``cls``, ``other`` or ``super()``."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls", "other")


def private_names(node):
    """Yield the private name that a node defines, of an attribute, method or module."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr if is_own(node.value) else ""


def test_no_package_reads_private_attributes_of_another():
    source = Path(cg.__file__).parent
    own, read = collections.defaultdict(set), []
    for path in source.rglob("*.py"):  # no tree is kept: half a million nodes are slow to collect
        place = path.relative_to(source)
        for node in ast.walk(ast.parse(path.read_text())):
            own[place.parts[0]].update(private_names(node))
            private = isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
            if private and not is_own(node.value):
                read.append((place, node.attr, f"{place}:{node.lineno}: {ast.unparse(node)}"))
    found = [where for place, name, where in read if name not in own[place.parts[0]] | NOT_PRIVATE]
    assert found == []
