"""Contexts read and written back are the same contexts."""

import math
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas
from hypothesis import given, settings
from hypothesis import strategies as st

import contextgap as cg
from contextgap.tables.columns import RARE, UNKNOWN
from contextgap.tables.contexts import ContextSchema, read_columns

COLUMNS = cg.Columns(
    country=cg.Category(missing=True),
    hour=cg.Cyclic(24, missing=True),
    age=cg.Number(missing=True),
    when=cg.Date(("day", "week"), missing=True),
    flag="category",
)
ROWS = st.fixed_dictionaries(
    {
        "country": st.none() | st.sampled_from(["DE", "FR", "in between"]),
        "hour": st.none() | st.floats(0, 23.9),
        "age": st.none() | st.floats(-1e6, 1e6),
        "when": st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
        "flag": st.booleans(),
    }
)


@given(st.lists(ROWS, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_what_is_decoded_is_encoded_alike(rows):
    intake = read_columns(COLUMNS).read(pandas.DataFrame(rows, dtype=object), learning=True)
    found = intake.schema.decode(intake.rows)
    assert [list(row) for row in found] == [list(COLUMNS)] * len(rows)
    again = intake.schema.read(pandas.DataFrame(found, dtype=object)).rows
    # Dates are written to the second.
    np.testing.assert_allclose(again, intake.rows, rtol=1e-9, atol=1e-4)
    for was, now in zip(rows, found, strict=True):
        assert now["country"] == was["country"]
        assert now["flag"] == str(was["flag"]).lower()
        assert now["age"] == was["age"]
        if was["hour"] is None:
            assert now["hour"] is None
        else:
            assert math.isclose(now["hour"], was["hour"], abs_tol=1e-9)


def test_levels_that_are_pooled_and_levels_never_met():
    many = pandas.DataFrame({"shop": [f"s{i}" for i in range(305)], "x": 1.0})
    schema = ContextSchema().read(many, learning=True).schema
    assert schema.decode(schema.read({"shop": "s304", "x": 2.0}).rows)[0]["shop"] == RARE
    few = ContextSchema().read(many[:3], learning=True).schema
    assert few.decode(few.read({"shop": "new", "x": 2.0}).rows)[0]["shop"] == UNKNOWN


def test_times_with_zones_keep_them():
    east = timezone(timedelta(hours=2))
    frame = pandas.DataFrame({"when": [datetime(2026, 1, 1, 1, tzinfo=east)], "c": ["a"]})
    intake = ContextSchema().read(frame, learning=True)
    assert intake.schema.decode(intake.rows)[0]["when"] == "2025-12-31T23:00:00+00:00"
    plain = pandas.DataFrame({"when": [date(2026, 1, 1)], "c": ["a"]})
    intake = ContextSchema().read(plain, learning=True)
    assert intake.schema.decode(intake.rows)[0]["when"] == "2026-01-01T00:00:00"


def test_numbers_with_names_and_without():
    rows = np.array([[1.0, 2.0]])
    assert ContextSchema(2).decode(rows) == [[1.0, 2.0]]
    assert ContextSchema(2, ("a", "b")).decode(rows) == [{"a": 1.0, "b": 2.0}]
    assert ContextSchema(2).parts() == {"column 0": [0], "column 1": [1]}
    assert ContextSchema(2, ("a", "b")).parts() == {"a": [0], "b": [1]}
    typed = ContextSchema().read({"c": "x", "a": 1.0}, learning=True).schema
    assert typed.parts() == {"c": [1], "a": [0]}
