"""What type checkers know of the package: every room, and no name that is not there.

``make check`` reads this; an ignore that nothing needs is an error there, so the last line is one
that must be complained about.
"""

from typing import TYPE_CHECKING

import contextgap as cg

ROOMS = (
    cg.campaign.__name__,
    cg.client.__name__,
    cg.compression.__name__,
    cg.experiments.__name__,
    cg.explorers.__name__,
    cg.export.__name__,
    cg.insight.__name__,
    cg.io.__name__,
    cg.kernels.__name__,
    cg.mlflow.__name__,
    cg.partitions.__name__,
    cg.plot.__name__,
    cg.problems.__name__,
    cg.report.__name__,
    cg.sklearn.__name__,
    cg.testing.__name__,
    cg.theory.__name__,
)
NAMES = (cg.Campaign, cg.learn_from)
if TYPE_CHECKING:
    NOTHING = cg.nonsense  # type: ignore[attr-defined]  # there is no such name
