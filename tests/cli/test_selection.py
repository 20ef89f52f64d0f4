"""select, on small scenarios written here."""

import json

import numpy as np
import pandas as pd
import pytest

from contextgap.experiments import select_algorithms, summarise_selection
from contextgap.problems import AlgorithmSelection
from tests.cli.test_policies import call
from tests.problems.algorithm_selection.writing import NEW_DIALECT, write

ROWS = 36


def written(folder, name="TOY", quality=False):
    """Solver a is fast where x is small, b where it is large, c nowhere."""
    folder.mkdir(exist_ok=True)
    x = np.random.default_rng(len(name)).uniform(-1, 1, ROWS)
    seconds = 10 ** np.column_stack([1 + x, 1 - x, np.full(ROWS, 1.5)])
    ids = [f"i{row}" for row in range(ROWS)]
    runs = [
        f"{ids[row]},1,{solver},{seconds[row, place]},ok"
        for row in range(ROWS)
        for place, solver in enumerate("abc")
    ]
    head = "@RELATION t\n@ATTRIBUTE instance_id STRING\n@ATTRIBUTE repetition NUMERIC\n"
    kind = "@ATTRIBUTE algorithm STRING\n@ATTRIBUTE runtime NUMERIC\n"
    status = "@ATTRIBUTE runstatus {ok, timeout}\n@DATA\n"
    description = NEW_DIALECT.replace("TOY", name)
    if quality:
        description = description.replace(
            "performance_type:\n- runtime", "performance_type: solution_quality"
        )
    return write(
        folder,
        description=description,
        algorithm_runs=head + kind + status + "\n".join(runs) + "\n",
        feature_values=head
        + "@ATTRIBUTE big NUMERIC\n@DATA\n"
        + "".join(f"{name},1,{value}\n" for name, value in zip(ids, x, strict=True)),
        feature_runstatus=None,
        feature_costs=None,
        cv=head
        + "@ATTRIBUTE fold NUMERIC\n@DATA\n"
        + "".join(f"{name},1,{row % 2 + 1}\n" for row, name in enumerate(ids)),
    )


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path / "toy")


def small(tmp_path, *more):
    return ["--jobs", "1", "--seeds", "2", "--out", tmp_path / "out", *more]


def test_the_table_is_the_summary_and_fits_80_columns(folder, tmp_path):
    other = written(tmp_path / "other", "QUALITIES", quality=True)
    shown = call("select", folder, other, *small(tmp_path, "--choose", "--seeds", "1")).stdout
    lines = shown.splitlines()
    table = lines[: next(i for i, line in enumerate(lines) if line.startswith("*"))]
    assert max(map(len, table)) <= 80
    assert "…" not in "".join(table)
    assert shown.count("PAR10") == shown.count(" cost ") == 1
    records = pd.read_parquet(tmp_path / "out" / "records.parquet")
    for row in summarise_selection(records).to_dict("records"):
        name = row["method"] + ("*" if row["choose"] else "")
        found = [line for line in table if line.split()[1:2] == [name]]
        assert any(f" {row['average_regret']:#.3g} " in line for line in found)
        assert any(f"{row['closed_gap']:.2f} ±" in line for line in found)
        assert row["runs_paid"] == ROWS / 2
    assert "of 54" in shown  # three solvers on half of the instances
    for name in ("report.html", "figures/selection.png", "figures/selection.svg"):
        assert (tmp_path / "out" / name).exists()


def test_what_is_printed_for_machines_is_what_python_gives(folder, tmp_path):
    more = small(tmp_path, "--methods", "epsilon-greedy", "--budget", "0.5,2", "--json")
    found = json.loads(call("select", folder, *more).stdout)["results"]
    table = select_algorithms(
        AlgorithmSelection(folder).load(),
        methods=["epsilon-greedy", "uniform"],  # the yardstick comes unasked
        budget=[0.5, 2],
        seeds=[0, 1],
    )
    expected = summarise_selection(table).drop(columns="seconds")
    mine = pd.DataFrame(found)[expected.columns]
    pd.testing.assert_frame_equal(mine, expected, check_dtype=False)


def test_it_goes_on_where_it_was(folder, tmp_path):
    more = small(tmp_path, "--methods", "uniform", "--json")
    first = call("select", folder, *more).stdout
    parts = sorted((tmp_path / "out" / "parts").rglob("*.json"))
    assert len(parts) == 2 * 2
    parts[0].unlink()
    ages = {part: part.stat().st_mtime_ns for part in parts[1:]}
    again = call("select", folder, *more).stdout
    assert all(part.stat().st_mtime_ns == age for part, age in ages.items())
    drop = [{**row, "seconds": 0} for row in json.loads(first)["results"]]
    assert [{**row, "seconds": 0} for row in json.loads(again)["results"]] == drop


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{folder}", "--budget", "much"], "--budget must be numbers such as 0.25,1,4, got 'much'"),
        (["{folder}", "--budget", "0"], "budget must be positive, got 0.0"),
        (["{folder}", "--methods", "best"], "best"),
        (["{folder}", "{folder}"], "scenarios must have different names, got 'TOY' twice"),
        (["{folder}", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_named_before_any_work_begins(folder, tmp_path, arguments, message):
    given = [argument.format(folder=folder) for argument in arguments]
    result = call("select", *given, *small(tmp_path), code=2)
    assert message in result.stderr
    assert not list((tmp_path / "out").glob("parts/*.json"))
