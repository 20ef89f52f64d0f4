"""Small scenarios, written by the tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

# parents: algorithm_selection, problems, tests, the project.
ASLIB = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "aslib"

NEW_DIALECT = """\
scenario_id: TOY
performance_measures:
- runtime
maximize:
- false
performance_type:
- runtime
algorithm_cutoff_time: 100
algorithm_cutoff_memory: '?'
features_cutoff_time: '?'
feature_steps:
  size:
    provides:
    - big
    - same
  probe:
    provides:
    - depth
    requires:
    - size
metainfo_algorithms:
  a one:
    configuration: ''
    deterministic: true
"""

OLD_DIALECT = """\
scenario_id: TOY
performance_measures: runtime
maximize: FALSE
performance_type: runtime
algorithm_cutoff_time: 100
algorithm_cutoff_memory: ?
features_cutoff_time: ?
features_deterministic: big, same, depth
feature_step size: big, same
feature_step probe: depth
algorithms_deterministic: a one, b
"""

RUNS = """\
@RELATION runs
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE algorithm STRING
@ATTRIBUTE runtime NUMERIC
@ATTRIBUTE runstatus {ok, timeout, memout, not_applicable, crash, other}
@DATA
% each instance with both algorithms
'i 1',1,'a one',10,ok
'i 1',1,b,1,ok
i2,1,'a one',1,ok
i2,1,b,100,timeout
i3,1,'a one',0.5,crash
i3,1,b,0.0001,ok
i4,1,'a one',20,ok
i4,2,'a one',?,memout
i4,1,b,150,ok
"""

FEATURES = """\
@RELATION features
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE big NUMERIC
@ATTRIBUTE same NUMERIC
@ATTRIBUTE "depth" NUMERIC
@DATA
'i 1',1,1,7,5
i2,1,2,7,?
i3,1,4,?,1
i3,2,6,7,3
"""

STATUSES = """\
@RELATION statuses
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE size {ok, timeout}
@ATTRIBUTE probe {ok, timeout}
@DATA
'i 1',1,ok,ok
i2,1,ok,timeout
i3,1,ok,ok
i3,2,ok,timeout
i4,1,ok,timeout
"""

COSTS = """\
@RELATION costs
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE size NUMERIC
@ATTRIBUTE probe NUMERIC
@DATA
'i 1',1,0.5,1
i2,1,0.5,?
"""

FOLDS = """\
@RELATION cv
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE fold NUMERIC
@DATA
'i 1',1,1
i2,1,2
i3,1,1
i4,1,2
'i 1',2,2
"""

TOY = {
    "description.txt": NEW_DIALECT,
    "algorithm_runs.arff": RUNS,
    "feature_values.arff": FEATURES,
    "feature_runstatus.arff": STATUSES,
    "feature_costs.arff": COSTS,
    "cv.arff": FOLDS,
}


def write(folder: Path, **changed: str | None) -> Path:
    """Write the toy scenario; a keyword is a file's stem and its text, None to leave it out."""
    for name, text in TOY.items():
        text = changed.get(name.partition(".")[0], text)
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8")
    return folder


ROWS = 36
"""Instances of the larger scenario."""


def write_larger(folder: Path, name: str = "TOY", quality: bool = False) -> Path:
    """Write a scenario: solver a is fast where x is small, b where it is large, c nowhere."""
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
