from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from contextgap.studies.report import pick_histogram, regret_curves, save
from contextgap.studies.report.page import inline_svg


@pytest.mark.parametrize("kind", ["curves", "picks"])
def test_files_are_the_same_every_time(kind, records, picks, tmp_path):
    def draw():
        return regret_curves(records) if kind == "curves" else pick_histogram(picks)

    figure = draw()
    first = save(figure, tmp_path / "new" / "a", "figure")
    again = save(figure, tmp_path / "b", "figure")
    anew = save(draw(), tmp_path / "c", "figure")
    assert [path.name for path in first] == ["figure.svg", "figure.png"]
    for paths in zip(first, again, anew, strict=True):
        assert len({path.read_bytes() for path in paths}) == 1
    assert ElementTree.parse(first[0]).getroot().tag.endswith("svg")
    assert first[1].read_bytes().startswith(b"\x89PNG")


def test_inline_figures_refer_to_themselves_only(records):
    text = inline_svg(regret_curves(records), "own-", "a &lt; b")
    assert text.startswith('<svg role="img" aria-label="a &lt; b"')
    identifiers = re.findall(r'\sid="([^"]*)"', text)
    used = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', text)
    assert all(name.startswith("own-") for name in identifiers)
    assert {a or b for a, b in used} <= set(identifiers)


def test_names_with_folders_are_refused(records, tmp_path):
    with pytest.raises(ValueError, match="without folders"):
        save(regret_curves(records), tmp_path, "../figure")


def test_the_library_loads_neither_matplotlib_nor_pandas_and_reports_no_pyplot():
    code = (
        "import sys, contextgap; assert not {'matplotlib', 'pandas'} & set(sys.modules);"
        "import contextgap.report; assert not {'matplotlib.pyplot', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
