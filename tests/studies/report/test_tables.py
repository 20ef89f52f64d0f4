from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from contextgap.studies.report.page import table_html, three_digits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.053, "0.0530"),
        (0.9996, "1.00"),
        (0.0, "0.00"),
        (-0.5, "-0.500"),
        (99.96, "100"),
        (123456.0, "123000"),
        (np.float32(0.25), "0.250"),
        (np.int64(12345), "12345"),
        (1e-7, "1.00e-07"),
        (float("nan"), "–"),
        (float("-inf"), "−∞"),
        (None, "–"),
        (pd.NA, "–"),
        (np.True_, "yes"),
        ("0.1", "0.1"),
    ],
)
def test_values_read_well(value, text):
    assert three_digits(value) == text


def test_numbers_keep_their_exact_value_for_sorting():
    html = table_html(pd.DataFrame({"x": [0.12345, np.nan], "n": [1, 2], "s": ["a", "b"]}), "c")
    assert '<td class="number" data-value="0.12345">0.123</td>' in html
    assert '<td class="number">–</td>' in html
    assert html.count('class="number" data-value') == 3
    assert "<td>a</td>" in html


def test_hostile_text_is_escaped():
    table = pd.DataFrame({"<b>": ["<script>alert(1)</script>"]})
    html = table_html(table, '"><img src=x>')
    assert "<script" not in html
    assert "<img" not in html
    assert "<b>" not in html


def test_tables_without_rows_say_so():
    assert "no rows" in table_html(pd.DataFrame(columns=["a"]), "nothing")
