from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import contextgap as cg
from contextgap.studies.experiments import PAPER_METHODS
from contextgap.studies.report import figures

BEYOND = ("max-variance", "elimination", "top-two-ts", "knowledge-gradient")
NAMED = tuple(dict.fromkeys((*cg.METHODS, *BEYOND)))

# Machado, Oliveira and Fernandes (2009), table 1, severity 1, on linear RGB.
BLINDNESS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour, matrix):
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(np.array(matrix) @ linear, 0, 1) / XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_every_named_method_has_its_own_colour_line_and_marker():
    looks = figures.line_styles(NAMED)
    assert list(looks) == list(NAMED)
    assert len({look.colour for look in looks.values()}) == len(NAMED)
    assert len({(look.line, look.marker) for look in looks.values()}) == len(NAMED)
    assert not set(looks.values()) & set(figures._SPARE)


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_of_the_papers_methods_differ_for_colour_blind_readers(kind):
    places = [
        lab(look.colour, BLINDNESS[kind]) for look in figures.line_styles(PAPER_METHODS).values()
    ]
    # A difference of about 2.3 is just noticeable.
    assert min(np.linalg.norm(a - b) for a, b in combinations(places, 2)) > 10


def test_looks_depend_neither_on_order_nor_on_company():
    alone = {label: figures.line_styles([label])[label] for label in (*NAMED, "mine")}
    together = figures.line_styles(reversed([*NAMED, "mine"]))
    assert together == alone


def test_unknown_labels_look_different_from_one_another():
    labels = [f"method {i}" for i in range(20)]
    assert len(set(figures.line_styles(labels).values())) == 20
    assert len({look.colour for look in figures.line_styles(labels[:5]).values()}) == 5
    assert figures.line_styles(labels) == dict(reversed(figures.line_styles(labels[::-1]).items()))
    assert len(figures.line_styles([f"method {i}" for i in range(30)])) == 30


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1.0, "1"),
        (0.0707, "0.071"),
        (22.36, "22"),
        (1500, "1500"),
        (1e-4, "$10^{-4}$"),
        (2.15e-5, r"$2.2\!\times\!10^{-5}$"),
        (1e6, "$10^{6}$"),
        (1e10, "$10^{10}$"),
    ],
)
def test_numbers_are_readable(value, text):
    assert figures.readable(value) == text
