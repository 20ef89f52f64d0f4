"""What the README and the documentation show can be run as it stands, on fewer rows."""

import importlib.util
import re
import shlex
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from contextgap.team.service.access import SCOPES
from tests.cli.test_policies import call
from tests.studies.problems.algorithm_selection.writing import write
from tests.team.service.conftest import closed  # noqa: F401  # a fixture

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
    *(f"docs/guide/{path.name}" for path in sorted((ROOT / "docs" / "guide").glob("*.md"))),
]
# Sizes, and nothing else, are replaced by smaller ones.
SMALLER = {
    "docs/exports.md": {
        "6000": "180",
        "5000": "150",
        "3000": "90",
        "32768": "16384",
        "65536": "16384",
    },
    "docs/spacecraft.md": {"6000": "800", "[:1000]": "[:100]"},
    "docs/studies.md": {"6000": "120", "2000": "40", "1000": "20"},
}
# Commands between the blocks of Python that later ones rest on.
NEEDED = {
    "docs/exports.md": ("learn", "export"),
    "docs/cheatsheet.md": ("learn", "recommend", "show", "watch", "export", "verify"),
}

# Pages that talk to a service at this address.
SERVED, ADDRESS = {"docs/service.md"}, "http://127.0.0.1:8000/#token=cgap_..."


def steps(page):
    """Yield what a page shows, in order: ("python", code) or ("contextgap", arguments)."""
    text = (ROOT / page).read_text(encoding="utf-8")
    fences = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
    for kind, block in fences.findall(text):
        for large, small in SMALLER.get(page, {}).items():
            block = block.replace(large, small)
        if kind == "python":
            yield kind, block
        for command in re.findall(r"^\$ contextgap ((?:.*\\\n)*.*)", block, flags=re.MULTILINE):
            yield "contextgap", shlex.split(command.replace("\\\n", " "))


@pytest.mark.parametrize("page", [page for page in PAGES if any(steps(page))])
def test_blocks_run_one_after_the_other(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    address = ADDRESS
    if page in SERVED:
        running = request.getfixturevalue("closed")
        token = running.token("page", *SCOPES)["Authorization"].split()[1]
        address = f"{running.url}/#token={token}"
    (tmp_path / "BNSL-2016").mkdir()
    write(tmp_path / "BNSL-2016")
    rng = np.random.default_rng(0)
    log = pd.DataFrame({"size": rng.uniform(size=40), "arm": np.resize(["a", "b"], 40)})
    log.assign(reward=rng.normal(size=40)).to_csv("log.csv", index=False)
    log[["size"]].to_csv("new.csv", index=False)
    # A module of its own, so that classes defined on the page can be pickled.
    module = types.ModuleType(re.sub(r"\W", "_", page))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for number, (kind, shown) in enumerate(steps(page)):
        if kind == "python":
            shown = shown.replace(ADDRESS, address)
            exec(compile(shown, f"{page}, block {number}", "exec", dont_inherit=True), vars(module))
        elif shown[0] in NEEDED.get(page, ()):
            call(*shown)
    pyplot.close("all")


@pytest.mark.parametrize("name", ["bad_tables", "bad_requests"])
def test_bad_input_is_what_the_page_says(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), f"python docs/{name}.py"


def test_no_page_uses_names_it_does_not_define():
    """Dots in place of a value are a name that a reader cannot type."""
    for page in PAGES:
        for kind, shown in steps(page):
            if kind == "python":
                assert not re.search(r"=\s*\.\.\.", shown), page
