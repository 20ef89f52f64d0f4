"""Whether an export decides as the policy does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.export.answers import answers_of, is_near_tie, possible_answers
from contextgap.export.rule import check_masks, decision_rule
from contextgap.policy import Policy
from contextgap.tables.eligible import Mask

# Scores as close as this, of scores around 1, are told apart by rounding alone.
NEAR = 1e-9
# What a certificate may be wrong by, of beliefs around 1: widths are roots of what cancels out.
CLOSE = 1e-6


@dataclass(frozen=True)
class Parity:
    """How an export's decisions compare with the policy's.

    Parameters
    ----------
    contexts
        How many were compared.
    same
        Where both decide the same.
    near_ties
        Where they differ, and the scores of the two arms, or a bound and the tolerance of the
        fallback, differ by less than rounding does.
    different
        Where they differ otherwise.
    worst_added_regret
        Highest expected reward that the export gives away, as the policy expects it.
    mean_added_regret
        The same, averaged over all contexts.
    other_statuses
        Where the export says otherwise how it came to its answer, and rounding does not explain it;
        None if statuses were not compared.
    certificate_error
        Largest difference of certificates where both decide the same; None if certificates were not
        compared.
    other_certificates
        Where certificates differ by more than rounding explains in double precision; None likewise.
    """

    contexts: int
    same: int
    near_ties: int
    different: int
    worst_added_regret: float
    mean_added_regret: float
    other_statuses: int | None = None
    certificate_error: float | None = None
    other_certificates: int | None = None

    @property
    def agreement(self) -> float:
        """The share of contexts where both decide the same."""
        return self.same / self.contexts


def parity(
    policy: Policy,
    exported: IntArray,
    contexts: FloatArray,
    *,
    eligible: Mask | None = None,
    status: IntArray | None = None,
    certificate: FloatArray | None = None,
) -> Parity:
    """Compare an export's decisions with the policy's.

    Parameters
    ----------
    policy
        What was exported.
    exported
        The indices of the arms that the export recommends, −1 for none.
    contexts
        Where, shape (m, d), m at least 1, as the export takes them: of a table with typed columns,
        one number per column.
    eligible
        Which arms may be chosen at each context, shape (m, arms); all by default.
    status
        How the export says that it came to its answers, in the numbers of ``Policy.status``.
    certificate
        What the export says that its answers may miss, at most.
    """
    rule = decision_rule(policy)
    if eligible is not None:
        check_masks(rule)
    expected = answers_of(policy, rule, contexts, eligible)
    rows = np.arange(len(contexts))
    differs = exported != expected.arm
    answered = exported >= 0
    # Of the largest score anywhere, since what scores are sums of may be larger than they are.
    slack = np.full(len(rows), NEAR * _largest(expected.scores))
    possible = possible_answers(rule.fallback, expected, slack)
    near = differs & answered & possible[rows, exported]
    lost = expected.mean[rows, expected.arm] - expected.mean[rows, exported]
    lost = np.where(answered, np.maximum(lost, 0.0), np.inf)
    other = (status != expected.status) & ~is_near_tie(rule.fallback, expected, slack)
    error = None
    if certificate is not None:
        comparable = ~differs & np.isfinite(expected.certificate)
        if status is not None:
            comparable &= ~other
        error = np.where(comparable, np.abs(certificate - expected.certificate), 0.0)
        believed = max(_largest(expected.mean), _largest(expected.half_width))
    return Parity(
        contexts=len(contexts),
        same=int((~differs).sum()),
        near_ties=int(near.sum()),
        different=int((differs & ~near).sum()),
        worst_added_regret=float(lost.max()),
        mean_added_regret=float(lost.mean()),
        other_statuses=None if status is None else int(other.sum()),
        certificate_error=None if error is None else float(error.max()),
        other_certificates=None if error is None else int((error > CLOSE * believed).sum()),
    )


def _largest(values: FloatArray) -> float:
    """Return the largest finite magnitude."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
