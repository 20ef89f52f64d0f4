"""select, on small scenarios written here."""

import json

import numpy as np
import pandas as pd
import pytest

from contextgap.methods.method import RECOMMENDED
from contextgap.policy import Policy
from contextgap.studies.experiments import (
    learn_selector,
    select_algorithms,
    summarise_cpu,
    summarise_selection,
)
from contextgap.studies.problems import AlgorithmSelection
from tests.cli.test_policies import call
from tests.export.compilers import COMPILERS
from tests.studies.problems.algorithm_selection.writing import ROWS, write_larger


@pytest.fixture
def folder(tmp_path):
    return write_larger(tmp_path / "toy")


def small(tmp_path, *more):
    return ["--jobs", "1", "--seeds", "2", "--out", tmp_path / "out", *more]


def test_the_table_is_the_summary_and_fits_80_columns(folder, tmp_path):  # and is drawn
    other = write_larger(tmp_path / "other", "QUALITIES", quality=True)
    few = ["--seeds", "1", "--methods", "elimination"]
    shown = call("select", folder, other, *small(tmp_path, "--choose", *few)).stdout
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


def test_what_is_printed_for_machines_is_what_python_gives(folder, undrawn, tmp_path):
    more = small(tmp_path, "--methods", "epsilon-greedy", "--budget", "0.5,1", "--json")
    found = json.loads(call("select", folder, *more).stdout)["results"]
    table = select_algorithms(
        AlgorithmSelection(folder).load(),
        methods=["epsilon-greedy", "uniform"],  # the yardstick comes unasked
        budget=[0.5, 1],
        seeds=[0, 1],
    )
    expected = summarise_selection(table).drop(columns="seconds")
    mine = pd.DataFrame(found)[expected.columns]
    pd.testing.assert_frame_equal(mine, expected, check_dtype=False)


def test_it_goes_on_where_it_was(folder, undrawn, tmp_path):
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


@pytest.fixture
def new(tmp_path):
    """New instances: two clear ones and one that says nothing."""
    path = tmp_path / "new.csv"
    path.write_text("instance_id,big,colour\nsmall,-0.9,red\nlarge,0.9,red\ngap,?,red\n")
    return path


def test_one_solver_for_a_new_instance(folder, new, tmp_path):
    out = tmp_path / "out"
    shown = call("select", folder, "--instance", new, "--budget", "2", "--out", out).stdout
    selector = learn_selector(AlgorithmSelection(folder).load(), budget=2)
    for each in selector.select(selector.read(new)):
        (line,) = [line for line in shown.splitlines() if line.split()[1:2] == [each.instance]]
        numbers = (each.expected_loss, 10**each.expected_loss, each.bound, 10**each.bound)
        cells = [each.instance, each.solver, *(f"{number:.3g}" for number in numbers)]
        assert [cell.strip() for cell in line.strip("│").split("│")] == cells
    assert max(map(len, shown.splitlines()[:10])) <= 80
    assert "bounds: heuristic" in shown
    assert "columns not used: colour" in shown
    assert sorted(path.name for path in out.iterdir()) == [
        "contexts.csv",
        "selector.cgap",
        "selector.json",
    ]


def test_a_saved_selector_is_asked_without_its_scenario(folder, new, tmp_path):
    out = tmp_path / "out"
    first = json.loads(call("select", folder, "--instance", new, "--out", out, "--json").stdout)
    again = json.loads(call("select", out, "--instance", new, "--out", out, "--json").stdout)
    assert again == first
    assert [each["solver"] for each in first["selections"][:2]] == ["a", "b"]
    assert first["columns_not_used"] == ["colour"]
    assert first["bounds"] == "heuristic"
    assert first["runs"] == ROWS
    loss = first["selections"][0]["expected_loss"]
    assert first["selections"][0]["times_as_long"] == pytest.approx(10**loss)
    result = call("select", out, "--instance", new, "--budget", "2", code=2)
    assert "holds a selector that was learnt before" in result.stderr


def test_other_commands_know_the_selector(folder, new, tmp_path):
    out = tmp_path / "out"
    graph, code = tmp_path / "selector.onnx", tmp_path / "c"
    more = ["--instance", new, "--onnx", graph, "--c", code, "--out", out, "--json"]
    found = json.loads(call("select", folder, *more).stdout)
    policy, contexts = out / "selector.cgap", out / "contexts.csv"
    told = json.loads(call("recommend", policy, contexts, "--json").stdout)
    assert [each["arm"] for each in told] == [each["solver"] for each in found["selections"]]
    assert [each["regret_bound"] for each in told] == [
        each["bound"] for each in found["selections"]
    ]
    result = call("recommend", policy, new, code=2)
    assert "there is no column 'prepared big'" in result.stderr
    for export in (graph, code) if COMPILERS else (graph,):
        compared = call("verify", policy, export, "--contexts", contexts, "--count", 50, "--json")
        assert json.loads(compared.stdout)["passed"]
    assert found["written"]["onnx"] == str(graph)
    assert found["written"]["c"] == str(code)


@pytest.mark.parametrize("option", ["--selector", "--c"])
def test_a_selector_without_any_instance(folder, tmp_path, option):
    target = [] if option == "--selector" else [tmp_path / "exported"]
    shown = call("select", folder, option, *target, "--out", tmp_path / "out").stdout
    assert shown.startswith(f"TOY: 3 solvers, {ROWS} runs, {RECOMMENDED}\n")
    assert Policy.load(tmp_path / "out" / "selector.cgap").arms == ("a", "b", "c")
    assert all(path.exists() for path in target)
    assert not (tmp_path / "out" / "parts").exists()


def test_losses_of_quality_are_no_factors(new, tmp_path):
    folder = write_larger(tmp_path / "quality", quality=True)
    more = ["--instance", new, "--out", tmp_path / "out"]
    assert "times" not in call("select", folder, *more).stdout
    found = json.loads(call("select", tmp_path / "out", *more, "--json").stdout)
    assert "times_as_long" not in found["selections"][0]


def test_long_names_are_not_cut_and_solvers_not_broken(folder, tmp_path):
    path, name = tmp_path / "new.csv", "family/" + "x" * 90 + "/7"
    path.write_text(f"instance_id,big\n{name},0.5\n")
    runs = folder / "algorithm_runs.arff"
    runs.write_text(runs.read_text().replace(",1,b,", f",1,{'solver-b-' * 3},"))
    shown = call("select", folder, "--instance", path, "--out", tmp_path / "out").stdout
    lines = [line.split("│") for line in shown.splitlines() if line.startswith("│")]
    assert "".join(cells[1].strip() for cells in lines) == name
    assert lines[0][2].strip() == "solver-b-" * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{folder}", "--instance", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["{folder}", "--instance", "{folder}/cv.arff"], "the suffix '.arff' is unknown"),
        (["{folder}", "{folder}", "--instance", "{new}"], "a selector is learnt on one FOLDER"),
        (["{folder}", "--instance", "{new}", "--budget", "1,2"], "with one --budget"),
        (["{folder}", "--instance", "{new}", "--budget", ""], "with one --budget"),
        (["{folder}", "--instance", "{bad}"], "line 2, attribute 'big': a number is needed"),
        (["{folder}", "--instance", "{lacking}"], "there is no column 'big'"),
        (["nowhere", "--instance", "{new}"], "nowhere"),
    ],
)
def test_mistakes_with_instances_are_named_before_any_work(
    folder, new, tmp_path, arguments, message
):
    places = {"folder": folder, "new": new}
    for name, text in {"bad": "big\nmuch\n", "lacking": "large\n1\n"}.items():
        places[name] = tmp_path / f"{name}.csv"
        places[name].write_text(text)
    given = [argument.format(**places) for argument in arguments]
    result = call("select", *given, "--out", tmp_path / "out", code=2)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_cpu_time_takes_the_place_of_runs(folder, tmp_path):  # and is drawn
    more = small(tmp_path, "--methods", "race,uniform", "--cpu", "0.3,0.9")
    shown = call("select", folder, *more).stdout
    assert "0.3 of the full table's CPU time" in shown
    records = pd.read_parquet(tmp_path / "out" / "records.parquet")
    summary = summarise_cpu(records)
    assert set(summary["method"]) == {"race", "uniform"}
    for row in summary.to_dict("records"):
        assert f"{row['regret']:#.3g}" in shown
    assert (tmp_path / "out" / "figures" / "selection.png").exists()
    found = json.loads(call("select", folder, *more, "--json").stdout)["results"]
    pd.testing.assert_frame_equal(pd.DataFrame(found)[summary.columns], summary)
    refused = call("select", folder, *more, "--budget", "2", code=2)
    assert "without --budget" in " ".join(refused.stderr.split())
    aimed = small(tmp_path, "--methods", "race", "--cpu", "0.9", "--aim", "par10", "--json")
    (row,) = json.loads(call("select", folder, *aimed).stdout)["results"]
    assert row["method"] == "race for PAR10"
    refused = call("select", folder, "--aim", "par10", code=2)
    assert "give --cpu or --seconds too" in " ".join(refused.stderr.split())


def test_a_table_of_ones_own_is_a_scenario(undrawn, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 60)
    table = pd.DataFrame({"x": x, "up": 10 ** (1 + x), "down": 10 ** (1 - x)})
    table.to_csv(tmp_path / "times.csv", index=False)
    times = [tmp_path / "times.csv", "--solvers", "up,down", "--cutoff", "50"]
    more = small(tmp_path, "--cpu", "0.5", "--methods", "race,full table")
    assert "times: 0.5 of the full table's CPU time" in call("select", *times, *more).stdout
    few = small(tmp_path, "--methods", "uniform", "--json")
    rows = json.loads(call("select", *times, *few).stdout)["results"]
    assert {row["scenario"] for row in rows} == {"times"}
    shown = call("select", *times, "--selector", "--out", tmp_path / "own").stdout
    assert "2 solvers" in shown
    refused = call("select", tmp_path / "times.csv", code=2)
    assert "--solvers names its columns" in " ".join(refused.stderr.split())
    refused = call("select", tmp_path, "--solvers", "up,down", code=2)
    assert "are for tables" in " ".join(refused.stderr.split())
