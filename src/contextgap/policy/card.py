"""The score card: how good a policy is, estimated from the rewards it was learnt from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from contextgap.base import checks, html
from contextgap.base.labels import Label, decode_label, encode_label

_VALUES = ("value", "best_single", "logged", "direct", "weighted")  # rewards, or costs
LATER_FIELDS: dict[str, Any] = dict.fromkeys(("reward_range", "spent", "next_tenth"))
"""What cards of earlier releases lack; files of policies have it beside the card."""

Range = tuple[float, float]  # the lower value first


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error.

    .. versionadded:: 0.2

    Parameters
    ----------
    value
        The estimate.
    error
        Its standard error.
    limits
        The lowest and the highest value that there can be; None if they are unknown.

    Examples
    --------
    >>> from contextgap.policy.card import Estimate
    >>> Estimate(2.0, 0.5).interval
    (1.02, 2.98)
    >>> print(Estimate(2.0, 0.5))
    2 ± 0.5
    """

    value: float
    error: float
    limits: Range | None = None

    @property
    def interval(self) -> Range:
        """The 95 % interval: 1.96 standard errors to either side, within the limits."""
        low, high = (-math.inf, math.inf) if self.limits is None else self.limits
        ends = self.value - 1.96 * self.error, self.value + 1.96 * self.error
        return min(max(ends[0], low), high), min(max(ends[1], low), high)

    @property
    def in_words(self) -> str:
        """The number, its standard error, and the 95 % interval in brackets.

        .. versionadded:: 0.3
        """
        low, high = self.interval
        return f"{self} [{low:.4g}, {high:.4g}]"

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.error:.2g}"


@dataclass(frozen=True)
class Card:
    """An estimate of how good a policy is, by leave-one-out predictions; print it.

    Every logged reward is predicted, and every logged context decided, without that reward. No
    trial is needed. Where the eligible arms at a context are known, the policy chooses among them.

    .. versionadded:: 0.2

    Parameters
    ----------
    rewards
        How many rewards the policy was learnt from.
    looked_at
        How many of them were predicted leave-one-out, for decisions and errors of predictions.
        Averages over arms, and of what was logged, rest on all of them.
    error
        Root mean square error of predicted rewards.
    error_of_averages
        The same for each arm's average reward.
    value
        Average reward that the policy would earn at contexts like the logged ones; the average
        cost, as below, where rewards are costs.
    best_single_arm
        The arm that would earn most if it were always chosen.
    best_single
        What it would earn; where it was not eligible, the next best by average stands in for it.
    gain
        How much better the policy is than the best single arm.
    logged
        Average of the logged rewards.
    estimator
        "direct": values are predicted rewards, averaged over the logged contexts. "doubly robust":
        corrected by the prediction errors, weighted by the logging propensities.
    certificate
        Median over the logged contexts of the bound on a recommendation's simple regret.
    probability
        The probability with which all such bounds hold; None if they are heuristic.
    warnings
        Warnings before deployment, in words.
    log
        SHA-256 of the events of the campaign that the policy was frozen from; None without one.
    direct
        The direct estimate of the policy's value, beside a doubly robust one; None without one.
    weighted
        The self-normalised importance-weighted estimate (SNIPS) of the policy's value: the average
        of the rewards logged where the logged arm is the policy's, weighted by 1/propensity. It
        needs no model of rewards. None where propensities are unknown, or no such row was logged.
    reward_range
        Both rewards, or costs, where there are only two; intervals lie within what they allow.
    spent
        What the trials cost together; None where nothing is known or told about costs.
    next_tenth
        About what a tenth less regret would cost. It is extrapolated: the regret expected now, and
        that when half had been spent, are taken to fall on as a power of what is spent. None where
        that cannot be estimated.

    See Also
    --------
    Policy.card : The card of a policy.
    Learner.score : The card of deploying now.

    Examples
    --------
    >>> card = policy.card
    >>> card.rewards, card.best_single_arm
    (40, 'right')
    >>> round(card.gain.value, 1)
    0.4
    """

    rewards: int
    looked_at: int
    error: float
    error_of_averages: float
    value: Estimate
    best_single_arm: Label
    best_single: Estimate
    gain: Estimate
    logged: Estimate
    estimator: str
    certificate: float
    probability: float | None
    warnings: tuple[str, ...]
    log: str | None = None
    direct: Estimate | None = None
    weighted: Estimate | None = None
    reward_range: Range | None = None
    spent: float | None = None
    next_tenth: float | None = None

    def __post_init__(self) -> None:
        limits = self.reward_range
        difference = None if limits is None else (limits[0] - limits[1], limits[1] - limits[0])
        for name in ("gain", *_VALUES):
            if (each := vars(self)[name]) is not None:
                own = difference if name == "gain" else limits
                vars(self)[name] = replace(each, limits=own)

    @property
    def explained(self) -> float:
        """Share of the squared error of the arms' averages that the predictions remove."""
        if self.error_of_averages == 0:
            return 0.0
        return 1.0 - (self.error / self.error_of_averages) ** 2

    @property
    def basis(self) -> str:
        """What the card rests on, in words.

        .. versionadded:: 0.3
        """
        return (
            f"{self.looked_at} of {self.rewards} rewards predicted leave-one-out; [95 % intervals]"
        )

    def of_costs(self) -> Self:
        told = {name: vars(self)[name] for name in _VALUES if vars(self)[name] is not None}
        costs: dict[str, Any] = {
            name: Estimate(-each.value, each.error) for name, each in told.items()
        }
        return replace(self, **costs)

    def rows(self) -> list[tuple[str, str]]:
        """Return the card for people: pairs of a name and a text.

        Examples
        --------
        >>> [name for name, text in policy.card.rows()][:3]
        ['value of the policy', 'always right', 'gain over that']
        """
        kind = "heuristic" if self.probability is None else f"probability {self.probability:g}"
        others = (("  by predictions alone", self.direct), ("  by weights alone", self.weighted))
        return [
            ("value of the policy", f"{self.value.in_words} ({self.estimator})"),
            *((name, each.in_words) for name, each in others if each is not None),
            (f"always {self.best_single_arm}", self.best_single.in_words),
            ("gain over that", self.gain.in_words),
            ("logged rewards", self.logged.in_words),
            ("error of predictions", f"{self.error:.4g}"),
            ("error of averages", f"{self.error_of_averages:.4g}"),
            ("explained", f"{100 * self.explained:.1f} %"),
            ("median certificate", f"{self.certificate:.4g} ({kind})"),
            *self.spending(),
            *([] if self.log is None else [("log", self.log)]),
        ]

    def spending(self) -> list[tuple[str, str]]:
        if self.spent is None:
            return []
        more = "unknown" if self.next_tenth is None else f"about {self.next_tenth:.3g}"
        return [
            ("spent", f"{self.spent:.6g}"),
            ("a tenth less regret", f"{more}, extrapolated"),
        ]

    def __str__(self) -> str:
        size = max(len(name) for name, _ in self.rows())
        lines = [f"  {name:{size}}  {text}" for name, text in self.rows()]
        return "\n".join(
            [f"score card: {self.basis}", *lines, *(f"! {warning}" for warning in self.warnings)]
        )

    def _repr_html_(self) -> str:
        warned = [("!", warning) for warning in self.warnings]
        return html.table(f"score card: {self.basis}", ["", ""], [*self.rows(), *warned])

    def describe(self) -> dict[str, Any]:
        """Return the card as plain values; ``restored`` reverses it.

        Examples
        --------
        >>> policy.card.describe()["estimator"]
        'direct'
        """
        plain: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Estimate):
                value = [value.value, value.error]
            plain[field.name] = list(value) if isinstance(value, tuple) else value
        for name in ("log", "direct", "weighted", *LATER_FIELDS):
            if plain[name] is None:
                del plain[name]
        return {**plain, "best_single_arm": encode_label(self.best_single_arm)}

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> Self:
        """Reverse ``describe``; raise ``ValueError`` or ``TypeError`` for what is not a card."""
        plain: dict[str, Any] = dict(values)
        for name in (name for name in ("gain", *_VALUES) if values.get(name) is not None):
            value, error = (checks.real(name, number) for number in values[name])
            plain[name] = Estimate(value, error)
        for name in ("rewards", "looked_at"):
            plain[name] = checks.whole(name, values[name], least=0)
        for name in ("error", "error_of_averages", "certificate"):
            plain[name] = checks.real(name, values[name])
        if values["probability"] is not None:
            plain["probability"] = checks.fraction("probability", values["probability"])
        plain["best_single_arm"] = decode_label(values["best_single_arm"])
        plain["estimator"] = str(values["estimator"])
        if values.get("log") is not None:
            plain["log"] = str(values["log"])
        plain["warnings"] = tuple(str(warning) for warning in values["warnings"])
        for name in ("spent", "next_tenth"):
            if values.get(name) is not None:
                plain[name] = checks.at_least(name, values[name], 0.0)
        plain["reward_range"] = read_range(values.get("reward_range"))
        return cls(**plain)


def read_spending(values: Any) -> tuple[float, float | None] | None:
    """Return what a policy cost, and a tenth less regret would, as a file holds them."""
    if values is None:
        return None
    spent, more = (
        None if each is None else checks.at_least("spending", each, 0) for each in values
    )
    if spent is None:
        raise ValueError("spending has no total")
    return spent, more


def read_range(values: Any) -> Range | None:
    """Return two rewards that a file holds, the lower one first; None if it holds none."""
    if values is None:
        return None
    low, high = (checks.real("reward_range", number) for number in values)
    if low >= high:
        raise ValueError(f"reward_range must be a lower and a higher number, got {values!r}")
    return low, high
