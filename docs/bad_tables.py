"""Prints the tables of docs/bad_tables.md: bad tables, and what is said about each.

``python docs/bad_tables.py`` writes the page anew; the test suite compares both.
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import contextgap as cg
from contextgap.cli.app import app

PAGE = Path(__file__).with_suffix(".md")
ARMS = ["a", "b"]
TABLE = pd.DataFrame(
    {
        "country": ["DE", "FR", "DE", None],
        "age": [31.0, np.nan, 45.0, 28.0],
        "hour": [9, 12, 18, 23],
        "day": pd.date_range("2024-05-01", periods=4),
    }
)
ROW = {"country": "FR", "age": 33.0, "hour": 7, "day": "2024-06-01"}
LOG = "country,age,ad,clicked\nDE,31,a,1\nFR,45,b,0\nDE,28,a,1\n"


def learner() -> cg.Learner:
    columns = cg.Columns.from_table(TABLE, hour=cg.Cyclic(24))
    kernel = cg.Gaussian(1.0, categories=1)
    return cg.Learner(ARMS, columns=columns, kernel=kernel).fit(
        TABLE, ["a", "b", "a", "b"], [1] * 4
    )


def asked(**changes: Any) -> Callable[[], Any]:
    return lambda: learner().ask({**ROW, **changes})


def first(**columns: Any) -> Callable[[], Any]:
    table = pd.DataFrame({"x": np.arange(40.0) ** 2 % 7, **columns})
    rewards = np.sin(np.arange(40.0))

    def fit() -> None:
        kernel = cg.Gaussian.from_contexts(table)
        cg.Learner(ARMS, kernel=kernel).fit(table, ARMS * 20, rewards)

    return fit


def given(**kinds: Any) -> Callable[[], Any]:
    return lambda: cg.Columns(**kinds)


ZONED = datetime(2024, 6, 1, tzinfo=UTC)
ID = [f"u{place:03}" for place in range(40)]
IN_PYTHON: dict[str, Callable[[], Any]] = {
    "a column is missing": lambda: learner().ask({"country": "DE", "age": 33.0}),
    "a column twice": lambda: learner().ask(pd.concat([TABLE, TABLE[["age"]]], axis=1)),
    "too few cells": lambda: learner().ask(["DE", 33.0]),
    "text where a number was": asked(age="old"),
    "a missing value where none was": asked(hour=None),
    "an infinity": asked(age=np.inf),
    "no date": asked(day="soon"),
    "a time with a zone": asked(day=ZONED),
    "a level of no known kind": asked(country=1j),
    "a column of missing values, first": first(y=None),
    "numbers and text, first": first(y=[1, "one"] * 20),
    "a list in a cell, first": first(y=[[1]] * 40),
    "NaN in an array": lambda: cg.Learner(ARMS).ask([1.0, np.nan]),
    "an unknown kind": given(hour="cycle"),
    "a period of 0": lambda: cg.Cyclic(0),
    "an unknown cycle": lambda: cg.Date(("month",)),
    "a kernel of numbers": lambda: cg.Learner(ARMS, kernel=cg.Gaussian(1.0)).ask(TABLE),
    "an arm that is not there": lambda: learner().ask(ROW, arms=["a", "c"]),
    "no eligible arm": lambda: learner().recommend(TABLE[:2], arms=[["a"], []]),
    "the arm tried was not eligible": lambda: learner().tell(ROW, "a", 1.0, eligible=["b"]),
    "arms that are written alike": lambda: cg.Learner([1, "1"]),
    "an infinite arm": lambda: cg.Learner([1.0, float("inf")]),
    "a fallback that is no arm": lambda: learner().freeze(fallback="c"),
    "a tolerance without fallback": lambda: learner().freeze(tolerance=0.1),
    "masks of a look-back, exported": lambda: (
        cg.Learner(ARMS, kernel=cg.Gaussian(1.0), method="contextual-gap-history")
        .fit([[0.0], [1.0]], ARMS, [1, 0])
        .freeze()
        .to_c("c", eligible=True)
    ),
}
DOUBTS: dict[str, Callable[[], Any]] = {
    "an id": first(user=ID),
    "a column that numbers the rows": first(row=np.arange(40)),
    "a constant": first(unit="kg"),
    "the outcome": first(outcome=2 * np.sin(np.arange(40.0))),
    "a verdict on the outcome": first(
        verdict=np.where(np.sin(np.arange(40.0)) > 0.3, "good", "bad")
    ),
    "filled where the outcome was good": first(
        dwell=np.where(np.sin(np.arange(40.0)) > 0.3, np.arange(40.0) % 7, np.nan)
    ),
    "a copy of the arm": first(advert=ARMS * 20),
    "a propensity": first(propensity=[0.4, 0.6] * 20),
}
LEARN = ["--arm", "ad", "--reward", "clicked"]
# The file, and what to say besides.
IN_FILES: dict[str, tuple[str | bytes, list[str]]] = {
    "an empty file": ("", []),
    "a header alone": ("country,age,ad,clicked\n", []),
    "a line that is too short": (LOG + "FR,22,b\n", []),
    "a comment above the header": ("# October\n" + LOG, []),
    "two columns of one name": (LOG.replace("age", "country"), []),
    "a column without name": (LOG.replace("age", ""), []),
    "an unknown separator": (LOG.replace(",", ":"), []),
    "another encoding": (LOG.replace("FR", "Köln").encode("latin-1"), []),
    "a mistyped column": (LOG, ["--exclude", "user"]),
    "nothing left as context": (LOG, ["--exclude", "country,age"]),
    "an empty column": (LOG.replace("31", "").replace("45", "").replace("28", ""), []),
    "one cell that is no number": (LOG.replace("45", "old"), []),
    "decimal commas between commas": (LOG.replace("31", '"31,5"'), []),
    "per cent": (LOG.replace("31", "31%").replace("45", "45%").replace("28", "28%"), []),
    "dates in another order": (
        LOG.replace("31", "31.5.24").replace("45", "1.6.24").replace("28", "2.6.24"),
        [],
    ),
    "dates and other text": (
        LOG.replace("31", "2024-05-31").replace("45", "later").replace("28", "2024-06-02"),
        [],
    ),
    "an empty reward": (LOG.replace("a,1", "a,"), []),
    "a reward in words": (LOG.replace("b,0", "b,maybe"), []),
    "an arm is missing": (LOG.replace(",b,", ",,"), []),
    "a period that is none": (LOG, ["--cyclic", "age"]),
    "an unknown safe arm": (LOG, ["--fallback", "c"]),
    "no eligible arm": (LOG, ["--eligible", "country"]),
    "hyperparameters and kinds": (LOG, ["--category", "age", "--ridge", "1"]),
}


def said(call: Callable[[], Any]) -> str:
    """Return what is said about a bad table."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
    return "; ".join(f"{each.category.__name__}: {each.message}" for each in caught)


def said_of_file(content: str | bytes, options: list[str]) -> str:
    """Return what ``contextgap learn`` says about a file."""
    data = content if isinstance(content, bytes) else content.encode()
    Path("log.csv").write_bytes(data)
    made = CliRunner().invoke(app, ["learn", "log.csv", *LEARN, "-o", "p.cgap", *options])
    if made.exit_code != 2:
        raise RuntimeError(f"learn took it: {made.output}")
    return " ".join(made.stderr.split())


def table(headers: tuple[str, str], rows: dict[str, str]) -> str:
    lines = [f"| {headers[0]} | {headers[1]} |", "|---|---|"]
    lines += [f"| {what} | `{text.replace('|', chr(92) + '|')}` |" for what, text in rows.items()]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def elsewhere() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def page() -> str:
    """Return the page."""
    with elsewhere():
        found = [
            table(("in Python", "what is said"), {what: said(call) for what, call in each.items()})
            for each in (IN_PYTHON, DOUBTS)
        ]
        files = {what: said_of_file(*each) for what, each in IN_FILES.items()}
    return f"""# Bad tables

Every error names the column, the row or line, the value, and what to do. A refused table changes
nothing. `python docs/bad_tables.py` writes this page, and the test suite compares both.

The learner below has learnt from a table with four columns: country (a category with missing
values), age (a number with missing values), hour (`Cyclic(24)`) and day (a date). Rows marked
*first* are about the first table of another learner.

{found[0]}
When the first table arrives, a warning names columns that are probably not context:

{found[1]}
Files are read by `contextgap learn log.csv --arm ad --reward clicked`:

{table(("in a file", "what is said"), files)}"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
