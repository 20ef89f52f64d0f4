"""The command that reproduces the paper's studies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from contextgap.cli.options import CORES, Dask, Evaluate, Explore, GridSize, Jobs, Json, Seed
from contextgap.cli.studies import print_summary, summary_of
from contextgap.cli.terminal import command_line, complaints, out, phases, print_json
from contextgap.cli.workers import workers
from contextgap.studies.experiments.reproduce import (
    AUTHORS,
    PAPER,
    Reproduction,
    Workshop,
    reproduce_bench,
    reproduce_sinusoids,
    reproduce_spacecraft,
)


def reproduce_command(
    study: Annotated[
        str, typer.Argument(help="sinusoids, bench, spacecraft, or all of the protocol's.")
    ] = "all",
    protocol: Annotated[
        str, typer.Option(help="paper: the text's; authors: that of the authors' code.")
    ] = PAPER,
    repetitions: Annotated[int, typer.Option(help="Repetitions or missions.", min=1)] = 10,
    explore: Explore = None,
    evaluate: Evaluate = None,
    grid: GridSize = 10,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    dask: Dask = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for results.")] = Path(
        "out/reproduce"
    ),
    json: Json = False,
) -> None:
    """Reproduce the paper's studies, tuned on held-out rows: every figure, a report of each."""
    from contextgap.studies.report.reproduction import reproduction_report
    from contextgap.studies.report.studies import write

    resume = f"finished parts are kept in {folder}; the same command goes on from there"
    answers = {}
    with complaints(resume):
        chosen = list(_STUDIES) if study == "all" else [study]
        if protocol == AUTHORS and study == "all":
            chosen.remove("spacecraft")  # whose channels have no unit in common
        for name in chosen:
            if name not in _STUDIES:
                raise ValueError(f"study must be {', '.join(_STUDIES)} or all, got {study!r}")
            with phases() as watch, workers(jobs, dask) as executor:
                place = folder / (name if protocol == PAPER else f"{name}-{protocol}")
                workshop = Workshop(executor, place, watch, grid, protocol)
                found = _STUDIES[name](workshop, explore, evaluate, repetitions, seed)
                found.main.results.write(place)
                watch("drawing")
                page = write(reproduction_report(found), place, command_line(), watch.seconds)
            records = found.main.results.records
            summary = summary_of(records[records["scale"] == 1.0])
            answers[name] = {"results": summary, "report": str(page)}
            if not json:
                by = "the paper's text" if protocol == PAPER else "the authors' code"
                title = f"{name}, the protocol of {by}: mean of {repetitions} repetitions"
                print_summary(title, summary)
                out.print(f"report: {page}", soft_wrap=True)
    if json:
        print_json(answers)


def _sinusoids(
    workshop: Workshop, explore: int | None, evaluate: int | None, repetitions: int, seed: int
) -> Reproduction:
    sizes = {"explore": explore or 2000, "evaluate": evaluate or 1000}
    return reproduce_sinusoids(workshop, **sizes, repetitions=repetitions, seed=seed)


def _magnetometers(
    reproduce: Callable[..., Reproduction],
    workshop: Workshop,
    explore: int | None,
    evaluate: int | None,
    repetitions: int,
    seed: int,
) -> Reproduction:
    return reproduce(
        workshop,
        hold_out=(min(explore or 1000, 1000), min(evaluate or 1000, 1000)),
        evaluate=(explore or 3000, evaluate or 950),
        repetitions=repetitions,
        seed=seed,
    )


_STUDIES: dict[str, Callable[..., Reproduction]] = {
    "sinusoids": _sinusoids,
    "bench": partial(_magnetometers, reproduce_bench),
    "spacecraft": partial(_magnetometers, reproduce_spacecraft),
}
