"""The command that writes a small project to begin with: trials, a script and a notebook."""

from __future__ import annotations

import csv
import json as js
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from contextgap.base.files import whole_file
from contextgap.cli.terminal import out

_ROWS = 120
_CELLS = [
    (
        "markdown",
        """# Which cooling to use when

`trials.csv` has a row for each trial: what was known before (temperature, load, mode), the
cooling that was tried, and how well that went. Replace it by trials of your own.""",
    ),
    (
        "code",
        """import pandas as pd

import contextgap as cg

trials = pd.read_csv("trials.csv")
contexts = trials[["temperature", "load", "mode"]]
learner = cg.Learner(sorted(trials["arm"].unique()), seed=0)
learner.fit(contexts, trials["arm"], trials["reward"])""",
    ),
    ("markdown", "How good would it be to decide by what was learnt?"),
    ("code", "policy = learner.freeze()\nprint(policy.card)"),
    ("markdown", "The same in a few words, for people:"),
    ("code", "print(policy.rules())"),
    ("markdown", "What to do now, and how sure that is:"),
    (
        "code",
        """now = {"temperature": 31.0, "load": 0.7, "mode": "eco"}
print(policy.decide(now))
policy.save("policy.cgap")""",
    ),
    ("markdown", "What to try next, to learn more:"),
    ("code", "trial = learner.trial(now)\nprint(trial.arm)\n# learner.tell(trial, reward)"),
]


def init_command(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.")] = Path(),
) -> Iterator[Any]:
    """Write a small project into an empty folder: trials.csv, explore.py and explore.ipynb."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not empty; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    _write_trials(folder / "trials.csv")
    for name, text in (("explore.py", _script()), ("explore.ipynb", _notebook())):
        with whole_file(folder / name, text=True) as file:
            file.write(text)
    written = [str(folder / name) for name in ("trials.csv", "explore.py", "explore.ipynb")]
    enter = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    yield {"written": written}
    out.print(f"wrote {', '.join(written)}\nnext: {enter}python explore.py")


def _write_trials(path: Path) -> None:
    """Write trials of three coolings, of which each is best somewhere."""
    rng = np.random.default_rng(0)
    with whole_file(path, text=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["temperature", "load", "mode", "arm", "reward"])
        for _ in range(_ROWS):
            warm, load = round(rng.uniform(10, 40), 1), round(rng.uniform(), 2)
            mode, arm = str(rng.choice(["eco", "fast"])), str(rng.choice(["air", "fan", "water"]))
            value = {
                "air": 1.0 - warm / 40,
                "fan": 0.6 - (0.3 if mode == "eco" else 0.0),
                "water": warm / 50 + 0.2 * load,
            }[arm]
            writer.writerow([warm, load, mode, arm, round(value + 0.05 * rng.normal(), 3)])


def _script() -> str:
    parts = []
    for kind, text in _CELLS:
        lines = text.splitlines()
        notes = (f"# {line.removeprefix('# ')}".rstrip() for line in lines)
        parts.append(text if kind == "code" else "\n".join(notes))
    return "\n\n".join(parts) + "\n"


def _notebook() -> str:
    cells: list[dict[str, Any]] = []
    for place, (kind, text) in enumerate(_CELLS):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{place}", "metadata": {}}
        cell["source"] = text.splitlines(keepends=True)
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return js.dumps(whole, indent=1) + "\n"
