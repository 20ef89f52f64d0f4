"""The colours that reports, the live page and the documentation share."""

import re
from importlib.resources import files
from itertools import product

import pytest

from contextgap.insight.plot import ARMS

LOOK = files("contextgap.base").joinpath("look.css").read_text(encoding="utf-8")
COLOURS = {
    name: pair for name, *pair in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", LOOK)
}
TEXTS = ("ink", "quiet", "accent", "danger", "flag", "good")


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(*colours):
    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [0, 1])
def test_text_can_be_read(dark):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    pairs = [*product(TEXTS, ("paper", "ground", "faint")), ("accent-ink", "accent")]
    seen = {pair: contrast(*(COLOURS[name][dark] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in seen.items() if ratio < 4.5} == {}


def test_pages_have_the_colours_of_figures():
    for colour in map(str.lower, ARMS):
        assert COLOURS[f"c-{colour[1:]}"][0] == colour
