from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from contextgap.tables.columns import Category
from contextgap.tables.files import read_names, read_sheet
from contextgap.tables.table import to_number


@pytest.fixture
def write(tmp_path):
    def write(content, name="log.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_numbers_of_the_named_columns_in_the_order_named(write):
    sheet = read_sheet(write("a,b,c\n1,2,x\n-3e-2, 4 ,y\n"))
    np.testing.assert_array_equal(sheet.numbers(["b", "a"]), [[2, 1], [4, -0.03]])
    assert sheet.others(["b"]) == ("a", "c")


@pytest.mark.parametrize(
    "content",
    [
        "a,b\r\n1,2\r\n",  # from Windows
        "\ufeffa,b\n1,2\n",  # from a spreadsheet
        "\na , b\n\n1,2\n\n\n",  # blank lines and spaces in the header
        '"a","b"\n"1","2"',
        "a;b\n1;2\n",
        "a;b\n1,0;2,0\n",
        "\n\na\tb\n1\t2\n",
        "a|b\n1|2\n",
        "sep=;\na;b\n1;2\n",
        "a,b,\n1,2,\n",  # a last column without anything
        "a,b\n$1.00,2 €\n",
    ],
)
def test_csv_dialects(write, content):
    np.testing.assert_array_equal(read_sheet(write(content)).numbers(["a", "b"]), [[1, 2]])


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["the file is empty", "a header and at least one row"]),
        ("\n\n", ["the file is empty"]),
        ("a,b\n", ["the table has no rows", "['a', 'b']"]),
        ("a,c\n1,2\n", ["there is no column 'b'", "['a', 'c']"]),
        ("a:b\n1:2\n", ["there is no column 'a'", "['a:b']"]),
        ("sep=;\na;b\n1;2\nx;3\n", ["line 4, column 'a'"]),
        ("a;b\n1;1.000,5\n", ["line 2, column 'b'", "a number is needed, got '1.000,5'"]),
        ('a,b\n1,"1,5"\n', ["line 2, column 'b'", "numbers have a decimal point, got '1,5'"]),
        ("a,b,a\n1,2,3\n", ["two columns are called 'a'"]),
        ("a,b\n1,2\n3,x\n", ["line 3, column 'b'", "a number is needed, got 'x'"]),
        ("a,b\n1,2\n\n\n3,x\n", ["line 5, column 'b'", "got 'x'"]),
        ("a,b\n1,\n", ["line 2, column 'b'", "the cell is empty"]),
        ("a,b\n1,  \n", ["line 2, column 'b'", "the cell is empty"]),
        ("a,b\n1,2\nnan,2\n", ["line 3, column 'a'", "a finite number is needed, got 'nan'"]),
        ("a,b\n1,2\n1,-inf\n", ["line 3, column 'b'", "a finite number is needed, got '-inf'"]),
        ("a,b\n1,1e999\n", ["line 2, column 'b'", "a finite number is needed, got '1e999'"]),
        ("a,b\n1,1_000\n", ["line 2, column 'b'", "got '1_000'"]),
        ("a,b\n1,2\n1,NA\n", ["line 3, column 'b'", "got 'NA'"]),
        ("a,b\n1,2\n1\n", ["line 3", "the header has 2 cells, this line 1"]),
        ("a,b\n1,2\n1,5,6\n", ["line 3", "the header has 2 cells, this line 3"]),
        ('a,b\n1,"2\n', ["line 2", "not CSV"]),
        (b"a,b\n1,2\n1,\xff\n", ["line 3: not UTF-8 text", "save it as CSV in UTF-8"]),
        ("# from a bench\na,b\n1,2\n", ["line 2", "nothing may stand above the header"]),
    ],
)
def test_bad_csv_is_named(write, content, parts):
    path = write(content)
    with pytest.raises(ValueError, match=r"log\.csv") as caught:
        read_sheet(path).numbers(["a", "b"])
    for part in [str(path), *parts]:
        assert part in str(caught.value)


def test_line_numbers_count_lines_within_quotes(write):
    path = write('note,a\n"two\nlines",1\nx,bad\n')
    with pytest.raises(ValueError, match="line 4, column 'a'"):
        read_sheet(path).numbers(["a"])


@pytest.mark.parametrize(
    ("column", "parts"),
    [
        ([1.0, math.nan], ["row 2, column 'b'", "the cell is empty"]),
        ([1.0, math.inf], ["row 2, column 'b'", "a finite number is needed, got inf"]),
        (["1", "x"], ["row 2, column 'b'", "a number is needed, got 'x'"]),
        (pd.array([1, None], dtype="Int64"), ["row 2, column 'b'", "the cell is empty"]),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), ["row 1, column 'b'", "Timestamp"]),
    ],
)
def test_bad_parquet_is_named(tmp_path, column, parts):
    path = tmp_path / "log.parquet"
    pd.DataFrame({"a": [1, 2], "b": column}).to_parquet(path)
    with pytest.raises(ValueError, match=r"log\.parquet") as caught:
        read_sheet(path).numbers(["a", "b"])
    for part in parts:
        assert part in str(caught.value)


def test_parquet_types_that_are_numbers(tmp_path):
    path = tmp_path / "log.pq"
    frame = pd.DataFrame({"i": [1, 2], "f": [0.5, 1.5], "b": [True, False]})
    frame["n"] = pd.array([3, 4], dtype="Int64")
    frame.to_parquet(path)
    numbers = read_sheet(path).numbers(["i", "f", "b", "n"])
    np.testing.assert_array_equal(numbers, [[1, 0.5, 1, 3], [2, 1.5, 0, 4]])


def test_what_is_not_parquet_is_named(write):
    with pytest.raises(ValueError, match="not a readable Parquet file"):
        read_sheet(write("a,b\n1,2\n", "log.parquet"))


def test_an_empty_parquet_table_is_named(tmp_path):
    path = tmp_path / "log.parquet"
    pd.DataFrame({"a": []}).to_parquet(path)
    with pytest.raises(ValueError, match="no rows, only the columns"):
        read_sheet(path)


def test_paths_that_are_no_tables(tmp_path, write):
    with pytest.raises(FileNotFoundError, match=r"gone\.csv: there is no such file"):
        read_sheet(tmp_path / "gone.csv")
    with pytest.raises(ValueError, match=r"'\.xlsx' is unknown; known are \.csv, \.tsv, "):
        read_sheet(write("", "log.xlsx"))
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(ValueError, match="this is a directory"):
        read_sheet(tmp_path / "dir.csv")


def test_a_nameless_column_is_not_taken_by_default(write):
    sheet = read_sheet(write("a,,b\n0,1,2\n"))
    np.testing.assert_array_equal(sheet.numbers(["a"]), [[0]])
    with pytest.raises(ValueError, match=r"column 2 has no name"):
        sheet.others(["b"])


def test_a_saved_index_is_left_out_with_a_note(write):
    with pytest.warns(UserWarning, match="numbers the rows, as a saved index does; it is left out"):
        assert read_sheet(write(",a,b\n4,1,2\n5,1,2\n")).others(["b"]) == ("a",)
    with pytest.raises(ValueError, match=r"column 1 has no name"):
        read_sheet(write(",a,b\n4,1,2\n7,1,2\n")).others(["b"])


def test_cells_become_numbers_text_and_gaps(write):
    text = "n,word,mixed,gap\n1, a ,1,NA\n2.5,,x,\n-3,c,3,7\n"
    sheet = read_sheet(write(text))
    table = sheet.table(["n", "word", "gap"])
    assert table["n"].tolist() == [1, 2.5, -3]
    assert table["word"] == ["a", None, "c"]
    np.testing.assert_array_equal(table["gap"], [np.nan, np.nan, 7])
    with pytest.raises(ValueError, match=r"line 3, column 'mixed': .*'x'; is it a category"):
        sheet.table(["mixed"])
    known = sheet.table(["mixed", "n"], {"mixed": Category(), "n": Category()})
    assert known["mixed"] == ["1", "x", "3"]
    assert known["n"] == ["1", "2.5", "-3"]


def test_words_for_gaps_and_decimal_commas(write):
    sheet = read_sheet(
        write('text,date,n\nNaN,2024-01-01,"1,5"\nNA,n/a,"2,5"\nx,2024-01-02,"3,5"\n')
    )
    assert sheet.table(["text"])["text"] == [None, "NA", "x"]
    assert sheet.table(["date"])["date"] == ["2024-01-01", None, "2024-01-02"]
    with pytest.raises(ValueError, match=r"line 2, column 'n': numbers have a decimal point"):
        sheet.table(["n"])


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (["1,5", "2,5"], "line 2, column 'x': numbers have a decimal point, got '1,5'"),
        (["a", "17 %"], "line 3, column 'x': numbers are written without a per cent sign"),
        (["31.05.2024", "01.06.2024"], "line 2, column 'x': dates are written as 2024-05-31, got"),
        (["5/31/24", "6/1/24"], "dates are written as 2024-05-31, got '5/31/24'"),
        (["2024-05-31", "05/31/2024 9:30"], "line 3, column 'x': dates are written as 2024-05-31"),
        (["2024-05-31", "unknown"], "line 3, column 'x': a date such as 2024-05-31 is needed"),
        (["", "n/a"], "column 'x': every cell is empty; leave it out (--exclude)"),
    ],
)
def test_text_that_is_probably_none_is_named(write, cells, text):
    path = write("x\ty\n" + "".join(f"{cell}\t1\n" for cell in cells))
    with pytest.raises(ValueError, match=re.escape(text)):
        read_sheet(path).table(["x"])
    taken = read_sheet(path).table(["x"], {"x": Category()})["x"]
    assert taken == [None if cell in ("", "n/a") else cell for cell in cells]


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("$5", 5),
        ("-$5.50", -5.5),
        ("$-5", -5),
        ("5 €", 5),
        ("£ 1,234,567.50", 1234567.5),
        ("1,234", None),
        ("$5$", None),
        ("5$5", None),
        ("5 USD", None),
        ("1,23.5", None),
    ],
)
def test_money_is_a_number(cell, number):
    assert to_number(cell) == number


def test_separators(write):
    for name, separator, between in (("t.tsv", None, "\t"), ("t.csv", ";", ";")):
        sheet = read_sheet(write(f"a{between}b\n1{between}2\n", name), separator)
        np.testing.assert_array_equal(sheet.numbers(["a", "b"]), [[1, 2]])


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (["12:00", "12:01"], True),
        (["12:00", ""], True),
        (["12:00", "7"], False),
        (["nan", "nan"], False),
        (["", ""], False),
    ],
)
def test_text_columns(write, cells, text):
    path = write("t,a\n" + "".join(f"{cell},1\n" for cell in cells))
    assert read_sheet(path).is_text("t") is text


@pytest.mark.parametrize(
    ("names", "kind", "message"),
    [
        ("a", TypeError, "rewards must be a list of column names, got 'a'"),
        (3, TypeError, "rewards must be a list of column names, got 3"),
        ([], ValueError, "rewards must name at least one column"),
        (["a", 1], TypeError, "got 1 in it"),
        (["a", "a"], ValueError, "got 'a' twice"),
    ],
)
def test_bad_names_are_named(names, kind, message):
    with pytest.raises(kind, match=message):
        read_names("rewards", names)


def test_rewards_may_be_truth_values(write):
    sheet = read_sheet(write("won,paid,liked\nTrue,1.5,yes\nfalse,0,N\n"))
    np.testing.assert_array_equal(sheet.rewards("won"), [1, 0])
    np.testing.assert_array_equal(sheet.rewards("liked"), [1, 0])
    np.testing.assert_array_equal(sheet.rewards("paid"), [1.5, 0])
    said = (
        "column 'won': a number is needed, got 'True'; words must be true, yes, y or false, no, n"
    )
    with pytest.raises(ValueError, match=f"{said} in every row"):
        read_sheet(write("won\nTrue\nmaybe\n")).rewards("won")


@pytest.mark.parametrize(
    "price",
    ["1.250,50", "2.100.000", "1,250,000", "1 250", "12'500.75", "1\u202f250", "1_250", "−427"],
)
def test_numbers_written_otherwise_are_no_categories(tmp_path, price):
    path = tmp_path / "prices.csv"
    path.write_text(f'price;arm\n"{price}";a\n"{price}";b\n', encoding="utf-8")
    sheet = read_sheet(path)
    with pytest.raises(ValueError, match=r"line 2, column 'price': (numbers|minus) .* written"):
        sheet.table(["price"])
    assert sheet.table(["price"], {"price": Category()})["price"] == [price] * 2
