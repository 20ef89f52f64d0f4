"""Tutorials can be run: what is cheap to check here. The build of the documentation runs them."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
INDEX = DOCS / "tutorials" / "index.md"
TUTORIALS = [path for path in sorted((DOCS / "tutorials").glob("*.md")) if path != INDEX]
PAGES = [DOCS / "start.md", *TUTORIALS]
HEADER = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n"

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def raw_cells(page):
    """Return all cells, with their options."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", text, re.S | re.M)


def cells(page):
    """Return the code of all cells."""
    options = re.compile(r"\A(?:(?::[^\n]*\n)+|---\n.*?\n---\n)", re.S)
    return [options.sub("", cell) for cell in raw_cells(page)]


def test_all_tutorials_are_in_the_index_and_in_its_contents():
    text = INDEX.read_text(encoding="utf-8")
    linked = re.findall(r"^:link: (\w+)$", text, re.M)
    (contents,) = re.findall(r"```\{toctree\}\n:hidden:\n\n(.*?)\n```", text, re.S)
    assert linked == contents.split()
    assert sorted(linked) == [path.stem for path in TUTORIALS]


@by_page
def test_header_says_that_the_page_is_run(page):
    assert page.read_text(encoding="utf-8").startswith(HEADER)


@by_page
def test_style_comes_first_and_a_place_to_go_comes_last(page):
    assert cells(page)[0] == "import tutorial_style\n"
    headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.M)
    assert headings[-1] == "Where next"


@by_page
def test_code_can_be_read(page):
    shown = cells(page)
    assert len(shown) > 3
    for code in shown:
        if code.startswith("%%"):  # another language, but for files of Python
            magic, _, code = code.partition("\n")
            if not magic.endswith(".py"):
                continue
        ast.parse(code)


@by_page
def test_code_is_shown_in_cells_that_are_run(page):
    assert not re.search(r"^```(python|bash|c)\b", page.read_text(encoding="utf-8"), re.M)


@by_page
def test_nothing_depends_on_this_machine(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.:/])/(?:home|root|tmp|usr|work|Users)/", text)
    for code in cells(page):
        assert not re.search(r"default_rng\(\)|np\.random\.(?!default_rng|Generator)\w+\(", code)


@by_page
def test_pictures_say_what_they_show(page):
    """A cell that draws has an alternative text."""
    for cell in raw_cells(page):
        if re.search(r"plt\.figure|cg\.plot\.", cell):
            assert re.search(r"^    alt: \S", cell, re.M), cell


def test_dead_links_are_found(tmp_path):
    spec = importlib.util.spec_from_file_location("check_links", DOCS / "check_links.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    (tmp_path / "one.html").write_text(
        '<h1 id="top"></h1><a href="#top"></a><a href="two.html#caf%C3%A9"></a>'
        '<a href="two.html#gone"></a><a href="https://example.org/none"></a><img src="no.png">'
    )
    (tmp_path / "two.html").write_text('<h1 id="café"></h1><a href="one.html"></a>')
    assert script.dead_links(tmp_path) == (5, ["one.html: no.png", "one.html: two.html#gone"])
