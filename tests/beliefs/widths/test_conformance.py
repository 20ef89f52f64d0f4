"""What every width must do."""

import pytest

import contextgap as cg
from contextgap.testing import check_width

WIDTHS = [
    cg.PosteriorWidth(),
    cg.PosteriorWidth(2.5),
    cg.RidgeWidth(0.5),
    cg.TheoremWidth(0.1, 1.0, 0.05),
    cg.TheoremWidth(0.0, 1.0, 0.05, tight=True),
    cg.TheoremWidth(0.1, 1.0, 0.05, contexts=4),
    cg.NonadaptiveWidth(0.1, 1.0, 0.05, 4),
    cg.NonadaptiveWidth(0.0, 1.0, 0.05, 4, tight=True),
]


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_every_width_conforms(width):
    check_width(width)
