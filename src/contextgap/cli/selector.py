"""The half of ``contextgap select`` that ships one selector and asks it about new instances."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contextgap.base.files import whole_file
from contextgap.cli.policies import kind_of_bounds
from contextgap.cli.terminal import out, phases, print_json, print_table
from contextgap.studies.experiments.selection import (
    DESCRIPTION,
    POLICY,
    SELECTION_METHODS,
    Selection,
    Selector,
    known_preparation,
    learn_selector,
)
from contextgap.studies.problems import AlgorithmSelection
from contextgap.studies.problems.algorithm_selection.features import Instances, read_instances

USUAL = {"method": SELECTION_METHODS[0], "budget": 1.0, "choose": False}

_FEW = 3  # unused columns to name


def ship(
    place: Path,
    instance: Path | None,
    how: dict[str, Any],
    folder: Path,
    onnx: Path | None,
    c: Path | None,
    json: bool,
) -> None:
    """Learn a selector on the scenario at ``place``, or load the one there; export and ask it.

    ``how`` are the settings to learn by.
    """
    with phases() as watch:
        instances = None
        if (place / DESCRIPTION).is_file():
            if how != USUAL:
                raise ValueError(
                    f"{place} holds a selector that was learnt before; --methods, --budget and "
                    "--choose are for learning one from a scenario"
                )
            selector, home = Selector.load(place), place
            if instance is not None:
                instances = selector.read(instance)
        else:
            scenario, home = AlgorithmSelection(place).load(), folder
            if instance is not None:  # before the work, so that mistakes are found before it
                instances = read_instances(instance, known_preparation(scenario))
            selector = learn_selector(scenario, progress=watch(scenario.name), **how)
            selector.save(folder)
        written = {"selector": home / POLICY, "preparation": home / DESCRIPTION}
        if onnx is not None:
            selector.policy.to_onnx(onnx)
            written["ONNX"] = onnx
        if c is not None:
            selector.policy.to_c(c)
            written["C"] = c
        selections = []
        if instances is not None:
            written["contexts"] = _write_contexts(folder, selector, instances)
            selections = selector.select(instances)
    unused = () if instances is None else instances.unused
    if json:
        print_json(_described(selector, selections, unused, written))
        return
    _show(selector, selections)
    if unused:
        more = f" and {len(unused) - _FEW} more" if len(unused) > _FEW else ""
        out.print(f"columns not used: {', '.join(unused[:_FEW])}{more}", markup=False)
    for what, path in written.items():
        out.print(f"{what}: {path}", soft_wrap=True, markup=False)


def _write_contexts(folder: Path, selector: Selector, instances: Instances) -> Path:
    """Write what the policy is asked, for other commands to ask it too."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "contexts.csv"
    with whole_file(path, text=True) as file:
        writer = csv.writer(file)
        writer.writerow(["instance_id", *(selector.policy.columns or ())])
        for name, context in zip(instances.names, instances.contexts.tolist(), strict=True):
            writer.writerow([name, *context])
    return path


def _described(
    selector: Selector,
    selections: Sequence[Selection],
    unused: Sequence[str],
    written: dict[str, Path],
) -> dict[str, Any]:
    answers = [asdict(selection) for selection in selections]
    if selector.runtime:
        for answer in answers:
            answer["times_as_long"] = _factor(answer["expected_loss"])
            answer["bound_times_as_long"] = _factor(answer["bound"])
    return {
        "scenario": selector.scenario,
        "method": selector.policy.method.name,
        "runs": sum(selector.policy.counts.values()),
        "selections": answers,
        "bounds": kind_of_bounds(selector.policy.probability),
        "columns_not_used": list(unused),
        "written": {what.lower(): str(path) for what, path in written.items()},
    }


def _show(selector: Selector, selections: Sequence[Selection]) -> None:
    policy = selector.policy
    title = (
        f"{selector.scenario}: {len(policy.arms)} solvers, {sum(policy.counts.values())} runs, "
        f"{policy.method.name}"
    )
    if not selections:
        out.print(title, markup=False)
        return
    headers = ["instance", "solver", "expected\nloss", "bound"]
    lines: list[list[Any]] = [
        [each.instance, each.solver, each.expected_loss, each.bound] for each in selections
    ]
    if selector.runtime:
        headers[3:3] = ["times\nas long"]
        headers.append("times\nas long")
        lines = [
            [*names, loss, _factor(loss), bound, _factor(bound)] for *names, loss, bound in lines
        ]
    print_table(title, headers, lines, unbroken=["solver"])
    if selector.runtime:
        out.print("loss: log10 of how many times as long as the best solver it takes")
    else:
        out.print("loss: how much worse the solution is than the best solver's")
    out.print(f"bounds: {kind_of_bounds(policy.probability)}")


def _factor(loss: float) -> float:
    return 10.0**loss if loss < 300 else math.inf  # beyond, there is no such float
