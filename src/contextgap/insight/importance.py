"""Which columns decisions depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.insight.bandwidths import spread_by_column
from contextgap.insight.contexts import read_policy, seen
from contextgap.tables.contexts import Encoded

_CONTEXTS = 500  # looked at
_REPEATS = 5  # shufflings of each column


@dataclass(frozen=True)
class Importance:
    """How far decisions depend on each column; print it.

    Parameters
    ----------
    changed
        By column: the share of decisions that change if the column is shuffled among contexts that
        were seen.
    spread
        By column: the largest of its numbers' standard deviations over their bandwidths, a column
        of categories counting as 1 over its bandwidth: near 0, the kernel does not see the column.
        None if the kernel has not one bandwidth per number.
    contexts
        How many contexts were looked at.
    """

    changed: Mapping[str, float]
    spread: Mapping[str, float] | None
    contexts: int

    def __str__(self) -> str:
        size = max(len("column"), *(len(name) for name in self.changed))
        lines = [f"  {'column':{size}}  {'changed':>8}" + ("  spread" if self.spread else "")]
        for name, share in sorted(self.changed.items(), key=lambda each: -each[1]):
            scale = f"  {self.spread[name]:6.2g}" if self.spread else ""
            lines.append(f"  {name:{size}}  {100 * share:6.1f} %{scale}")
        return "\n".join([f"decisions at {self.contexts} contexts", *lines])


def importance(source: Any, seed: int = 0) -> Importance:
    """Return which columns decisions depend on.

    Parameters
    ----------
    source
        A learner or a policy.
    seed
        Of the shuffling.
    """
    policy = read_policy(source)
    rng = np.random.default_rng(checks.whole("seed", seed, least=0))
    rows, schema = seen(policy, _CONTEXTS), policy.state.schema
    usual, changed = policy.recommend(Encoded(rows, schema)), {}
    for name, numbers in schema.parts().items():
        shares = []
        for _ in range(_REPEATS):
            shuffled = rows.copy()
            shuffled[:, numbers] = rows[rng.permutation(len(rows))][:, numbers]
            shares.append(np.mean(policy.recommend(Encoded(shuffled, schema)) != usual))
        changed[name] = float(np.mean(shares))
    return Importance(changed, spread_by_column(policy, rows), len(rows))
