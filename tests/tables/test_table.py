"""Whatever comes is read into one form, once."""

import math
import subprocess
import sys
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import contextgap as cg
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.table import Levels, Table, read_json

ROWS = [
    {"mode": "a", "speed": 1.5, "day": date(2024, 5, 1)},
    {"mode": None, "speed": 2.0, "day": date(2024, 5, 2)},
    {"mode": "b", "speed": math.nan, "day": date(2024, 5, 3)},
]


def as_columns(table):
    return {name: [str(cell) for cell in table[name]] for name in table.names}


@pytest.mark.parametrize("make", [list, tuple, pd.DataFrame])
def test_tables_of_all_kinds_are_read_alike(make):
    table = Table.of(make(ROWS))
    assert len(table) == 3
    assert table.to_json() == Table.of(ROWS).to_json()
    assert Table.of(table) is table


def test_polars_tables_are_read_alike():
    rows = [{name: row[name] for name in ("mode", "speed")} for row in ROWS]
    assert Table.of(pl.DataFrame(rows)).to_json() == Table.of(rows).to_json()


def test_json_reads_back_as_the_same():
    encoded = Table.of(ROWS).to_json()
    again = Table.from_json(encoded)
    assert again.to_json() == encoded
    assert as_columns(read_json(encoded)) == as_columns(again)
    first, several = again[0], again[1:]
    assert first == {"mode": "a", "speed": 1.5, "day": date(2024, 5, 1)}
    assert several.to_json() == Table.of(ROWS[1:]).to_json()
    assert again[[2, 0]].to_json() == Table.of([ROWS[2], ROWS[0]]).to_json()
    category = Table.from_json({"table": {"columns": ["x"], "rows": [[1]], "levels": ["x"]}})
    assert isinstance(category["x"], Levels)
    assert isinstance(category[:1]["x"], Levels)


def test_rows_in_requests_are_one_table():
    rows = [{"mode": "a", "at": {"time": "2024-05-01T10:00:00"}}, {"mode": None, "at": None}]
    table = read_json(rows)
    assert isinstance(table, Table)
    assert table["at"][0] == datetime(2024, 5, 1, 10)
    assert table.to_json()["table"]["rows"] == [["a", rows[0]["at"]], [None, None]]
    with pytest.raises(ValueError, match=r"^pool lack the column 'at' in row 1"):
        read_json([rows[0], {"mode": "b"}], "pool")
    with pytest.raises(ValueError, match=r"contexts\[0\].at must be a date in ISO format"):
        read_json([{"at": {"date": "May"}, "mode": 1}])
    assert read_json({"mode": "a"}) == {"mode": "a"}
    assert read_json([1.0, 2.0]) == [1.0, 2.0]


def test_learners_read_tables_as_what_they_were_made_of():
    frame = pd.DataFrame(ROWS)
    schema = ContextSchema().read(frame, learning=True).schema
    np.testing.assert_array_equal(
        schema.read(Table.of(frame)).rows, schema.read(read_json(Table.of(ROWS).to_json())).rows
    )
    numbers = Table.of([[1, 2.5], [3, 4.0]])
    np.testing.assert_array_equal(ContextSchema(2).read(numbers).rows, [[1, 2.5], [3, 4]])
    learner = cg.Learner(["x", "y"], kernel=cg.Gaussian(1.0), ridge=0.1)
    learner.tell(numbers, ["x", "y"], [1.0, 0.0])
    assert learner.ask(numbers).shape == (2,)


def test_reading_needs_neither_pandas_nor_studies(tmp_path):
    script = """
import sys
import contextgap as cg
from contextgap.tables.table import read_json
rows = [{"mode": mode, "speed": speed} for mode, speed in [["a", 1.0], ["b", None], ["a", 3.0]]]
campaign = cg.Campaign.create("c.db", "c", ["x", "y"], kernel=None)
campaign.tell(contexts=read_json(rows), arms=["x", "y", "x"], reward=[1.0, 0.0, 0.5])
assert [trial.context for trial in campaign.ask(read_json(rows[::2]))] == rows[::2]
assert "pandas" not in sys.modules
policy = campaign.learner().freeze()
policy.to_onnx("policy.onnx")
found = [name for name in sys.modules if name.startswith("contextgap.studies")]
assert not found, found
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
