from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from contextgap.studies.report import (
    Report,
    versions,
    write_report,
)

from .conftest import HOSTILE, make_report

VOID = {"meta", "br", "img", "hr", "input", "link"}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.found if name == tag]


@pytest.fixture(scope="module")
def page(report_file):
    return Page(report_file.read_text(encoding="utf-8"))


def test_every_element_is_closed(page):
    assert page.open == []


def test_identifiers_are_unique_and_references_resolve(page):
    identifiers = Counter(attrs["id"] for _, attrs in page.found if "id" in attrs)
    assert max(identifiers.values()) == 1
    for _, attrs in page.found:
        for name in ("href", "xlink:href"):
            if name in attrs and not attrs[name].startswith("records"):
                assert attrs[name].startswith("#")
                assert attrs[name][1:] in identifiers


def test_nothing_is_loaded_from_elsewhere(page, report_file):
    assert not page.all("link")
    for _, attrs in page.found:
        assert attrs.get("src", "data:").startswith("data:")
        assert "srcset" not in attrs
    text = report_file.read_text(encoding="utf-8")
    assert "@import" not in text
    assert all(url.startswith("#") for url in re.findall(r"url\(([^)]*)\)", text))
    # Names of XML vocabularies are not loaded.
    assert set(re.findall(r'(\S+)="https?:', text)) <= {"xmlns", "xmlns:xlink"}


def test_hostile_labels_stay_text(page):
    assert len(page.all("script")) == 1
    assert "".join(page.texts).count(HOSTILE) >= 6


def test_contents_settings_seeds_timings_and_versions_are_there(page):
    text = "".join(page.texts)
    links = [a["href"] for a in page.all("a")]
    assert links == ["records%201.csv", *(f"#part-{i}" for i in range(1, 6))]
    for expected in ("Settings", "0.100, 1.00", "ridges: 0.000100", "0 to 9", "7.00 s in all"):
        assert expected in text
    for expected in ("Made today by", "run 'x y'", "tuning", "75 %", "in all", "4.00"):
        assert expected in text
    for name, value in versions().items():
        assert name in text
        assert value in text
    assert {"python", "numpy", "scipy", "contextgap", "BLAS"} <= set(versions())
    assert text.count("no rows") == 1


def test_pages_are_the_same_every_time(report_file, tmp_path):
    assert (
        write_report(make_report(), tmp_path / "again.html").read_bytes()
        == report_file.read_bytes()
    )


def test_a_report_without_sections_is_a_page(tmp_path):
    page = Page(write_report(Report("Nothing", ""), tmp_path / "report.html").read_text())
    assert page.open == []
    assert len(page.all("a")) == 1


def test_figures_take_their_colours_from_the_page(page, report_file):
    text = report_file.read_text(encoding="utf-8")
    drawn = text[text.index("<figure>") : text.index("</main>")]
    assert not re.findall(r": #[0-9a-f]{6}", drawn)
    assert "fill: var(--paper)" in drawn
    assert "stroke: currentColor" in drawn
    # Every variable is either given by the style or has the figure's own colour to fall back on.
    given = set(re.findall(r"(--[\w-]+):", text[: text.index("</style>")]))
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= given
