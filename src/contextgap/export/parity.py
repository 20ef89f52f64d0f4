"""What Python answers at some contexts, and whether an export answers the same."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Mask
from contextgap.beliefs import Belief, gaps
from contextgap.export.rule import (
    DecisionRule,
    check_masks,
    decision_rule,
    has_unknown_level,
    observed_contexts,
    random_rows,
    read_rows,
    rows_of,
    seen_by_kernels,
)
from contextgap.models import KeepsHistory
from contextgap.policy import Policy
from contextgap.policy.state import Fallback, Status, answer
from contextgap.tables.contexts import Encoded

_ROUNDED = 0.01  # of decisions may change where contexts are rounded
# Scores as close as this, of scores around 1, differ by rounding alone.
NEAR = 1e-9
# What a certificate may be wrong by, of beliefs around 1: widths are roots of what cancels out.
CLOSE = 1e-6
_NOT_ELIGIBLE = {
    "mean": -np.inf,
    "half_width": 0.0,
    "gap": np.inf,
    "scores": np.inf,
    "bounds": np.inf,
}


@dataclass(frozen=True)
class Answers:
    """Python's answers at m contexts: the index of the arm answered, and what is believed.

    ``contexts`` are as exports take them.
    ``arm`` is the ``recommended`` one, or the fallback as ``status`` says (``policy.Status``).
    ``mean``, ``half_width`` and ``gap``, of shape (m, arms), are those after the last step, and
    ``certificate`` is max(0, gap of the arm answered). Of ``scores``, of the same shape, the
    recommended arm has the smallest; ``bounds`` are the gaps that arms would be recommended with.
    """

    contexts: FloatArray
    arm: IntArray
    recommended: IntArray
    status: IntArray
    mean: FloatArray
    half_width: FloatArray
    gap: FloatArray
    certificate: FloatArray
    scores: FloatArray
    bounds: FloatArray

    def tied(self, slack: FloatArray) -> Mask:
        """Say which arms' scores, shape (m, arms), exceed the lowest by ``slack`` at most."""
        lowest = self.scores[np.arange(len(self.scores)), self.recommended]
        return np.asarray(self.scores - lowest[:, None] <= slack[:, None])


def answers_of(
    policy: Policy, rule: DecisionRule, contexts: FloatArray, eligible: Mask | None = None
) -> Answers:
    """Return a policy's answers, ``_NOT_ELIGIBLE`` where arms are not; ``rule`` is the policy's."""
    seen, everywhere = seen_by_kernels(rule.table, contexts), np.arange(len(contexts))
    arm, recommended, status = np.empty((3, len(contexts)), dtype=np.intp)
    certificate, shape = np.empty(len(contexts)), (len(contexts), len(rule.labels))
    tables = {name: np.full(shape, otherwise) for name, otherwise in _NOT_ELIGIBLE.items()}
    for places, chooser in policy.chooser.groups(eligible):
        for block, choice, evidence in chooser.decisions(seen[places]):
            rows, columns = everywhere[places][block], np.array(evidence.columns)
            belief, found = evidence.belief, answer(rule.fallback, choice, evidence)
            arm[rows], recommended[rows] = columns[found.arm], columns[choice.arm]
            status[rows], certificate[rows] = found.status, np.maximum(found.gap, 0.0)
            scores = _scores(policy, rule, evidence.contexts, belief)
            bounds = scores if rule.compares == "history" else belief.gap
            believed = belief.mean, belief.half_width, belief.gap, scores, bounds
            for table, values in zip(tables.values(), believed, strict=True):
                table[np.ix_(rows, columns)] = values
    return Answers(contexts, arm, recommended, status, certificate=certificate, **tables)


def _scores(policy: Policy, rule: DecisionRule, contexts: FloatArray, belief: Belief) -> FloatArray:
    if rule.compares == "mean":
        return -belief.mean
    if rule.compares == "upper":
        return -belief.upper
    if rule.compares == "gap":
        return belief.gap
    # Each arm's smallest gap over the steps that the look-back compares.
    lower, upper = [], []
    model = cast(KeepsHistory, policy.state.model)  # else the rule could not be deployed
    states, steps, _ = model.history(contexts, policy.state.active, rule.first_step)
    for path in states:
        half = policy.width.half_width(path)
        lower.append(path.mean - half)
        upper.append(path.mean + half)
    smallest = np.full((len(contexts), len(lower)), np.inf)
    for now in np.unique(steps, axis=0):
        low = np.stack([path[state] for path, state in zip(lower, now, strict=True)], axis=-1)
        high = np.stack([path[state] for path, state in zip(upper, now, strict=True)], axis=-1)
        np.minimum(smallest, gaps(low, high), out=smallest)
    return smallest


def comparison_contexts(
    policy: Policy, rule: DecisionRule, count: int, given: Any, seed: int = 0
) -> FloatArray:
    """Return contexts to compare at, as exports take them: given ones, or near those observed."""
    # Of those that are made, a quarter are observed ones, half lie between and a quarter around.
    if given is not None:
        return policy.state.read(given)[0] if rule.table is None else read_rows(rule.table, given)
    rng = np.random.default_rng(seed)
    observed = observed_contexts(rule)
    if rule.table is not None:
        rows = rows_of(rule.table, observed)
        at = rows[rng.integers(len(rows), size=count // 4)] if len(rows) else rows
        return np.concatenate([at, random_rows(rule.table, rows, count - len(at), rng)])
    if not len(observed):
        return rng.uniform(-1.0, 1.0, (count, rule.dimension))
    low, high = observed.min(axis=0), observed.max(axis=0)
    beyond = 0.25 * np.where(high > low, high - low, 1.0)
    at = observed[rng.integers(len(observed), size=count // 4)]
    between = rng.uniform(low, high, (count // 2, rule.dimension))
    around = rng.uniform(
        low - beyond, high + beyond, (count - len(at) - len(between), rule.dimension)
    )
    return np.concatenate([at, between, around])


def warn_of_rounding(policy: Policy, rule: DecisionRule, contexts: FloatArray) -> None:
    """Warn if other arms are answered where contexts are rounded to single precision."""
    with np.errstate(over="ignore"):
        rounded = contexts.astype(np.float32).astype(np.float64)
    if not np.array_equal(np.isinf(rounded), np.isinf(contexts)):
        return  # beyond the range of single precision, of which exports complain
    exact, arms = (answers_of(policy, rule, rows).arm for rows in (contexts, rounded))
    changed = int(np.count_nonzero(exact != arms))
    if changed > _ROUNDED * len(contexts):
        warnings.warn(
            f"rounding contexts to single precision changes {changed} of {len(contexts)} "
            "decisions; subtract from every column a number amid its values before learning, or "
            "export in double precision",
            stacklevel=4,
        )


def fallback_arm(policy: Policy, rule: DecisionRule) -> int:
    """Return the safe arm; without one, that of the highest mean over all observed contexts."""
    if rule.fallback is not None:
        return rule.fallback.column
    means = policy.state.rules.sign * policy.raw_means(observed_contexts(rule))
    return int(means.sum(axis=0).argmax())


def possible_answers(fallback: Fallback | None, answers: Answers, slack: FloatArray) -> Mask:
    """Say which arms, shape (m, arms), may be answered if numbers are wrong by up to ``slack``."""
    tied = answers.tied(slack)
    if fallback is None:
        return tied
    tolerance = np.inf if fallback.tolerance is None else fallback.tolerance
    excess, wrong_by = answers.bounds - tolerance, slack[:, None]
    outside = answers.status[:, None] == Status.OUTSIDE  # which compares what is exact
    recommended = tied & (excess <= wrong_by) & ~outside
    falls = outside | (tied & ~(excess <= -wrong_by))
    is_fallback = np.arange(tied.shape[1]) == fallback.column
    answered = recommended | (is_fallback & falls.any(axis=1, keepdims=True))
    eligible = np.isfinite(answers.mean[:, [fallback.column]])
    return np.asarray(np.where(eligible, answered, tied))


def is_near_tie(fallback: Fallback | None, answers: Answers, slack: FloatArray) -> Mask:
    """Say where rounding by up to ``slack`` may change the answer, or why it is given."""
    found = answers.tied(slack).sum(axis=1) > 1
    if fallback is None:
        return np.asarray(found)
    if fallback.tolerance is not None:
        bound = answers.bounds[np.arange(len(found)), answers.recommended]
        found |= np.abs(bound - fallback.tolerance) <= slack
    return np.asarray(found & (answers.status != Status.OUTSIDE))


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

    See Also
    --------
    export.parity : Returns one.

    Examples
    --------
    >>> wrong = np.zeros(len(contexts), dtype=int)
    >>> parity = cg.export.parity(policy, wrong, contexts)
    >>> parity.same, parity.different
    (18, 22)
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
        The regret bounds that the export gives.

    Examples
    --------
    >>> same = np.where(policy.recommend(contexts) == "right", 1, 0)
    >>> cg.export.parity(policy, same, contexts).same
    40
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
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


@dataclass(frozen=True)
class Comparison:
    """An export's answers at some contexts, compared and timed."""

    parity: Parity
    single: bool
    microseconds: float
    microseconds_in_python: float

    def reasons(self, name: str, agreement: float) -> list[str]:
        found, most = self.parity, (1.0 - agreement) * self.parity.contexts
        wrong = {"decisions": found.different, "statuses": found.other_statuses or 0}
        if not self.single:
            wrong["certificates"] = found.other_certificates or 0
        return [
            f"{name}: {count} of {found.contexts} {what} differ"
            for what, count in wrong.items()
            if count > most
        ]

    def described(self) -> dict[str, Any]:
        return {
            **asdict(self.parity),
            "agreement": self.parity.agreement,
            "microseconds": self.microseconds,
            "microseconds_in_python": self.microseconds_in_python,
        }


def compare(
    policy: Policy, export: Any, contexts: FloatArray, eligible: Mask | None = None
) -> Comparison:
    """Ask a ``GraphPolicy`` or ``CompiledPolicy``, and its policy, at rows as exports take them."""
    rule = decision_rule(policy)
    microseconds, arms = _timed(lambda: export.recommend(contexts, arms=eligible), len(contexts))
    details = export.details(contexts, eligible)
    unknown = details.pop("unknown", None)
    if unknown is not None:  # no status of Python's is as wrong as this
        wrong = unknown != has_unknown_level(rule.table, contexts)
        details["status"][wrong & (details["status"] == Status.RECOMMENDED)] = -2
    seen = Encoded(seen_by_kernels(rule.table, contexts), policy.state.schema)
    in_python, _ = _timed(lambda: policy.recommend(seen, arms=eligible), len(contexts))
    found = parity(policy, arms, contexts, eligible=eligible, **details)
    return Comparison(found, export.dtype == np.float32, microseconds, in_python)


def _timed(call: Callable[[], Any], count: int) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = call()
    return 1e6 * (time.perf_counter() - start) / count, answer
