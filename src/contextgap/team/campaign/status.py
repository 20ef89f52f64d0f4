"""How a campaign stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contextgap.base.labels import Label
from contextgap.models.tuning import Tuning
from contextgap.policy.card import Card


@dataclass(frozen=True)
class CampaignStatus:
    """How a campaign stands; print it.

    Parameters
    ----------
    name
        Its name.
    trials
        How many trials there are in each state.
    rewards
        How many rewards of each arm were told and not retracted.
    settled
        The share of contexts with a certificate within the goal's tolerance; None before the first
        reward. Without a goal, the share of contexts seen at which the best arm is told apart.
    wanted
        The share at which exploring may end.
    asks_left
        About how many more rewards that takes, at the rate since there were half as many; None
        where that cannot be told.
    tuning
        The report of the last tuning; None before the first.
    score
        What deploying now would earn; None before there are two rewards.
    events
        How many events the log has.
    log
        The hash of the log.
    looked_after
        The number of the event after which ``settled`` and ``score`` were computed; less than
        ``events`` where the status is not fresh.
    """

    name: str
    trials: Mapping[str, int]
    rewards: Mapping[Label, int]
    settled: float | None
    wanted: float
    asks_left: int | None
    tuning: Tuning | None
    score: Card | None
    events: int
    log: str
    looked_after: int

    def rows(self) -> list[tuple[str, str]]:
        """Return the status for people: pairs of a name and a text."""
        settled = "unknown" if self.settled is None else f"{100 * self.settled:.1f} %"
        left = "unknown" if self.asks_left is None else f"about {self.asks_left}"
        tuned = "never"
        if self.tuning is not None:
            tuned = f"{self.tuning.chosen}, after {self.tuning.rewards} rewards"
        value = "unknown" if self.score is None else f"{self.score.value}"
        gain = "unknown" if self.score is None else f"{self.score.gain}"
        return [
            ("trials", ", ".join(f"{count} {state}" for state, count in self.trials.items())),
            ("rewards", ", ".join(f"{arm}: {count}" for arm, count in self.rewards.items())),
            ("settled", f"{settled} of {100 * self.wanted:g} % wanted"),
            ("asks left", left),
            ("last tuning", tuned),
            ("value if deployed now", value),
            ("gain over the best arm", gain),
            ("events", str(self.events)),
            *self._age(),
            ("log", self.log),
        ]

    def _age(self) -> list[tuple[str, str]]:
        if self.looked_after == self.events:
            return []
        return [("settled and value as of", f"event {self.looked_after}")]

    def describe(self) -> dict[str, Any]:
        """Return the status as plain values, for machines."""
        return {
            "name": self.name,
            "trials": dict(self.trials),
            "rewards": {str(arm): count for arm, count in self.rewards.items()},
            "settled": self.settled,
            "wanted": self.wanted,
            "asks_left": self.asks_left,
            "tuning": None if self.tuning is None else self.tuning.describe(),
            "score": None if self.score is None else self.score.describe(),
            "events": self.events,
            "log": self.log,
            "looked_after": self.looked_after,
        }

    def __str__(self) -> str:
        size = max(len(name) for name, _ in self.rows())
        lines = [f"  {name:{size}}  {text}" for name, text in self.rows()]
        return "\n".join([f"campaign {self.name}", *lines])
