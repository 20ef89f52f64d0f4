"""The report of tuning: what was tried, what was chosen, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from contextgap.base import checks


@dataclass(frozen=True)
class Candidate:
    """One kind of model that was tried.

    .. versionadded:: 0.2

    Parameters
    ----------
    name
        "constant" (every arm a constant), "linear", "gaussian" or "matern"; "given" for a kernel of
        the user's; "shared" for the best of these with arms that share what they learn;
        "exclusive" for one in which a success of an arm implies failures of the others;
        "ageing" for one in which rewards say less as they age;
        "cautious" for a Gaussian model with usual bandwidths and more noise.
    advantage
        By how many nats the criterion prefers it to the constant model: its log odds, prior
        included.
    explained
        Share of the squared error of the arms' averages that it explains, every reward predicted
        from its arm's others, or from all others where arms share. At most 1; below 0 where the
        averages predict better.

    Examples
    --------
    >>> [candidate.name for candidate in learner.tuning.candidates][:3]
    ['constant', 'linear', 'gaussian']
    """

    name: str
    advantage: float
    explained: float


@dataclass(frozen=True)
class Tuning:
    """A report of how the hyperparameters in use were learnt; print it.

    .. versionadded:: 0.2

    Parameters
    ----------
    criterion
        "evidence" or "loo".
    rewards
        How many rewards there were.
    looked_at
        How many of them were used.
    candidates
        The models that were tried.
    chosen
        The name of the candidate in use.
    reason
        Why it was chosen, in words.
    searched
        How many rewards there were at the last search from many points.
    ends
        Where the search of each candidate ended, in units of its own: the next one starts there.

    See Also
    --------
    Learner.tune : Learns hyperparameters.

    Examples
    --------
    >>> _ = learner.tune()
    >>> learner.tuning.chosen, learner.tuning.rewards
    ('linear', 40)
    """

    criterion: str
    rewards: int
    looked_at: int
    candidates: tuple[Candidate, ...]
    chosen: str
    reason: str
    searched: int = 0
    ends: Mapping[str, tuple[float, ...]] = field(default_factory=dict, repr=False)

    @property
    def explained(self) -> float:
        """Share of the squared error of the arms' averages that the chosen model explains."""
        return next(x.explained for x in self.candidates if x.name == self.chosen)

    def __str__(self) -> str:
        lines = [
            f"{self.chosen}: {self.reason}",
            f"  {'model':10} {'nats':>10} {'explained':>10}   "
            f"{self.looked_at} of {self.rewards} rewards, by {self.criterion}",
        ]
        for each in self.candidates:
            mark = ">" if each.name == self.chosen else " "
            lines.append(
                f"{mark} {each.name:10} {each.advantage:10.2f} {100 * each.explained:8.1f} %"
            )
        return "\n".join(lines)

    def describe(self) -> dict[str, Any]:
        """Return the report as plain values; ``restored`` reverses it.

        Examples
        --------
        >>> learner.tuning.describe()["criterion"]
        'evidence'
        """
        return asdict(self)

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> Self:
        """Reverse ``describe``; raise ``ValueError`` or ``TypeError`` for what is not a report."""
        candidates = tuple(
            Candidate(
                str(each["name"]),
                checks.real("advantage", each["advantage"]),
                checks.real("explained", each["explained"]),
            )
            for each in values["candidates"]
        )
        chosen = str(values["chosen"])
        if chosen not in [each.name for each in candidates]:
            raise ValueError("the model chosen in the tuning report is not among those tried")
        return cls(
            criterion=str(values["criterion"]),
            rewards=checks.whole("rewards", values["rewards"], least=0),
            looked_at=checks.whole("looked_at", values["looked_at"], least=0),
            candidates=candidates,
            chosen=chosen,
            reason=str(values["reason"]),
            # Releases before 0.3 always started from many points.
            searched=checks.whole("searched", values.get("searched", 0), least=0),
            ends={
                str(name): tuple(checks.real("ends", value) for value in point)
                for name, point in values.get("ends", {}).items()
            },
        )
