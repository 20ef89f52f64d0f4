from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from contextgap.tables.files import (
    Part,
    check_alike,
    count_rows,
    files_named,
    joined,
    parts_of,
    read_blocks,
    read_sheet,
)
from contextgap.tables.table import Holds, floats, to_number


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=23), "word": rng.choice(["a", "b, c"], 23)})
    table.loc[[3, 17], "x"] = np.nan
    table.loc[5, "word"] = None
    table["when"] = pd.Timestamp("2024-05-01") + pd.to_timedelta(np.arange(23), unit="D")
    return table


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=9)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.parquet"])
@pytest.mark.parametrize("rows", [1, 4, 23, 100])
def test_blocks_together_are_the_whole_table(frame, tmp_path, name, rows):
    path = write(frame, tmp_path / name)
    blocks, whole = list(read_blocks(path, rows=rows)), read_sheet(path)
    assert max(map(len, blocks)) == min(rows, 23)
    assert sum(map(len, blocks)) == len(whole) == 23
    together = joined(blocks)
    assert (together.columns, together.cells) == (whole.columns, whole.cells)
    assert (together.places, together.path) == (whole.places, path)
    assert whole.places[-1] == ("row 23" if name == "log.parquet" else "line 24")


def test_a_parquet_file_is_read_as_pandas_reads_it(frame, tmp_path):
    frame = frame.set_index("word")  # an index is no column
    whole = read_sheet(write(frame, tmp_path / "log.parquet"))
    assert whole.columns == ("x", "when")
    assert whole.cells_of("when") == pd.read_parquet(tmp_path / "log.parquet")["when"].tolist()
    np.testing.assert_array_equal(whole.table(["x"])["x"], frame["x"])


def test_parts_of_a_parquet_file_are_its_row_groups(frame, tmp_path, monkeypatch):
    monkeypatch.setattr("contextgap.tables.files._PART", 10)
    path = write(frame, tmp_path / "log.parquet")
    parts = parts_of(path)
    assert [part.groups for part in parts] == [(0, 1), (2,)]
    together = joined(block for part in parts for block in part.blocks(4))
    assert together.cells == read_sheet(path).cells
    assert together.places == read_sheet(path).places
    text = write(frame, tmp_path / "log.csv")
    assert parts_of(text) == [Part(text)]


def test_rows_are_counted(frame, tmp_path, monkeypatch):
    assert count_rows(write(frame, tmp_path / "log.parquet")) == 23
    path = write(frame, tmp_path / "log.csv")
    assert count_rows(path) == 23
    monkeypatch.setattr("contextgap.tables.files._BEGINNING", 300)
    assert path.stat().st_size > 600
    assert 20 <= count_rows(path) <= 26


@pytest.mark.parametrize(
    ("late", "parts"),
    [
        ("1,2,3\n", ["line 6", "the header has 2 cells, this line 3"]),
        ('1,"2\n', ["line 6", "not CSV"]),
        (b"1,\xff\n", ["line 6", "not UTF-8"]),
    ],
)
def test_errors_in_later_blocks_name_the_line(tmp_path, late, parts):
    path = tmp_path / "log.csv"
    late = late if isinstance(late, bytes) else late.encode()
    path.write_bytes(b"a,b\n" + b"1,2\n" * 4 + late)
    with pytest.raises(ValueError, match=r"log\.csv") as caught:
        list(read_blocks(path, rows=2))
    for part in parts:
        assert part in str(caught.value)


def test_a_last_column_without_name_must_stay_empty(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("a,\n1,\n2,\n3,x\n")
    assert read_sheet(path).columns == ("a", "")
    with pytest.raises(ValueError, match="line 4: the last column has no name, but cells"):
        list(read_blocks(path, rows=2))


def test_patterns_stand_for_files_in_order(tmp_path):
    for name in ("b.csv", "a.csv", "[1].csv"):
        (tmp_path / name).write_text("x\n1\n")
    assert [path.name for path in files_named([str(tmp_path / "[ab].csv")])] == ["a.csv", "b.csv"]
    assert files_named([tmp_path / "b.csv", tmp_path / "a.csv"])[0].name == "b.csv"
    assert [path.name for path in files_named([tmp_path / "[1].csv"])] == ["[1].csv"]
    with pytest.raises(FileNotFoundError, match=r"\*\.tsv: no file is called like that"):
        files_named([str(tmp_path / "*.tsv")])
    with pytest.raises(ValueError, match=r"a\.csv: the file is named twice"):
        files_named([str(tmp_path / "*.csv"), tmp_path / "a.csv"])


def test_files_with_other_columns_are_both_named(tmp_path):
    texts = {
        "a.csv": "x,y\n1,2\n",
        "b.csv": "y,x\n3,4\n",
        "c.csv": "x,z\n1,2\n",
        "d.csv": "x;y\n1;2",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    a, b, c, d = (read_sheet(tmp_path / name) for name in texts)
    both = joined([a, b])
    np.testing.assert_array_equal(both.numbers(["x", "y"]), [[1, 2], [4, 3]])
    assert (both.path, both.places) == (tmp_path, ["a.csv, line 2", "b.csv, line 2"])
    with pytest.raises(ValueError, match=r"c\.csv has the columns .*'z'\], but .*a\.csv \['x'"):
        check_alike(a, c)
    with pytest.raises(ValueError, match=r"a\.csv and .*d\.csv, one has decimal commas"):
        check_alike(a, d)


def test_plain_numbers_are_read_fast_and_the_same():
    plain = ["1", " 2.5 ", "-3e-2", 4, 5.5]
    assert floats(plain).tolist() == [to_number(cell) for cell in plain]
    for odd in ("1_000", "nan", "inf", "$5", "1,234.5", "", None, True, 10**400):
        assert floats([*plain, odd]) is None


def test_what_a_column_holds_adds_up():
    cells = ["1", "x", "", "2024-05-01", "NA", True]
    whole = Holds.of(cells)
    assert whole == Holds(number=True, word=True, date=True, blank=True, na=True)
    parts = [Holds.of([cell]) for cell in cells]
    assert parts[0] == Holds(number=True)
    assert parts[2] == Holds(blank=True)
    assert parts[5] == Holds(word=True)
    assert Holds.of([1.0, True]).number  # which are equal, but not the same
    together = Holds()
    for part in parts:
        together |= part
    assert together == whole


def test_a_part_of_a_table_is_typed_by_the_whole(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("a,b,c\nx,,x\ny,,y\n1,z,2024-01-01\n2,z,2024-01-02\n")
    first, second = read_blocks(path, rows=2)
    holds = {name: first.holds(name) | second.holds(name) for name in first.columns}
    with pytest.raises(ValueError, match=r"line 2, column 'a': a number is needed, got 'x'; is it"):
        first.table(["a"], holds=holds)
    with pytest.raises(ValueError, match="column 'b': every cell is empty"):
        first.table(["b"])
    assert first.table(["b"], holds=holds)["b"] == [None] * len(first)
    with pytest.raises(ValueError, match="line 2, column 'c': a date such as 2024-05-31 is needed"):
        first.table(["c"], holds=holds)
