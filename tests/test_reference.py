"""Every name in docs/api.md has an example, and says which release it came with."""

import importlib
import inspect
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIRECTIVE = re.compile(r"^\.\. auto(class|function|module):: (\S+)\n((?: +:.*\n)*)", re.MULTILINE)
FIRST = set((ROOT / "tests" / "names_of_0_1.txt").read_text().split())


def named(path):
    home, _, name = path.rpartition(".")
    try:
        owner = importlib.import_module(home)
    except ImportError:  # a class
        owner = named(home)
    return getattr(owner, name)


def listed(text):
    return [each.strip() for each in text.split(",") if each.strip()]


def methods(thing, options):
    """Names of the methods that a directive documents."""
    chosen = listed(options["members"]) or (
        dir(thing) if "inherited-members" in options else list(vars(thing))
    )
    for name in chosen:
        member = inspect.getattr_static(thing, name)
        method = inspect.unwrap(getattr(member, "__func__", member))
        if not name.startswith("_") and inspect.isfunction(method) and method.__doc__:
            yield name


def documented():
    """Every class, function and method that the reference shows, with its path."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for kind, path, found in DIRECTIVE.findall(text):
        options = dict(re.findall(r":([\w-]+): ?(.*)", found))
        things = [path]
        if kind == "module":
            if "members" not in options:
                continue
            names = listed(options["members"]) or importlib.import_module(path).__all__
            things, options["members"] = [f"{path}.{name}" for name in names], ""
        for where in things:
            thing = named(where)
            yield where, thing
            if inspect.isclass(thing) and "members" in options:
                left_out = listed(options.get("exclude-members", ""))
                for name in methods(thing, options):
                    if name not in left_out:
                        yield f"{where}.{name}", getattr(thing, name)


NAMES = dict(documented())


def test_the_reference_is_read():
    for name in ("Learner", "Learner.ask", "Campaign.ask", "plot.along", "theory.scale"):
        assert f"contextgap.{name}" in NAMES


def test_every_name_has_an_example():
    assert [name for name, thing in NAMES.items() if ">>> " not in inspect.getdoc(thing)] == []


def test_every_name_says_which_release_it_came_with():
    said = {name for name, thing in NAMES.items() if ".. versionadded:: " in inspect.getdoc(thing)}
    silent = {name for name in NAMES if name not in said and name.rpartition(".")[0] not in said}
    assert silent - FIRST == set()
    assert set(NAMES) - said >= FIRST


def test_see_also_names_what_exists():
    """References are names of the same class, of the same package, or below ``contextgap``."""
    missing = []
    for name, thing in NAMES.items():
        part = re.search(r"See Also\n-+\n((?:\S.*\n?)+)", inspect.getdoc(thing))
        for each in re.findall(r"^([\w., ]+) : ", part[1] if part else "", re.MULTILINE):
            for other in listed(each):
                near = name.rpartition(".")[0]
                if not any(map(exists, (f"{near}.{other}", f"contextgap.{other}"))):
                    missing.append((name, other))
    assert missing == []


def exists(path):
    try:
        named(path)
    except (ImportError, AttributeError):
        return False
    return True
