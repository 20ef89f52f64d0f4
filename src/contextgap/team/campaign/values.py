"""Values of campaigns: trials, frozen policies, status, and what can go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contextgap.base.checks import Label
from contextgap.models.tuning import Tuning
from contextgap.policy.state import Card


class ConflictError(ValueError):
    """A request that contradicts what happened before, such as a key used for something else.

    .. versionadded:: 0.2

    Examples
    --------
    >>> try:
    ...     campaign = cg.Campaign.create("bench.db", "bench", ["up"])
    ... except cg.campaign.ConflictError as error:
    ...     print(error)
    there is a campaign 'bench' already; open it, or choose another name
    """


class NotFoundError(ValueError):
    """A campaign, a trial or a policy that does not exist.

    .. versionadded:: 0.2

    Examples
    --------
    >>> try:
    ...     campaign.trial(17)
    ... except cg.campaign.NotFoundError as error:
    ...     print(error)
    there is no trial 17
    """


class AlteredError(ValueError):
    """A row of the database is not what was written; ``contextgap database verify`` says more.

    .. versionadded:: 0.3

    Examples
    --------
    >>> issubclass(cg.campaign.AlteredError, ValueError)
    True
    """


class UnavailableError(OSError):
    """The database cannot be used now. Nothing was changed, and trying again later may help.

    .. versionadded:: 0.3

    Examples
    --------
    >>> issubclass(cg.campaign.UnavailableError, OSError)
    True
    """


class DeadlineError(TimeoutError):
    """A call took longer than it may, or nobody waits for it any more. Nothing was changed.

    .. versionadded:: 0.3

    See Also
    --------
    campaign.calling : Sets the deadline.

    Examples
    --------
    >>> try:
    ...     with cg.campaign.calling(deadline=0.0):
    ...         trials = campaign.ask(contexts)
    ... except cg.campaign.DeadlineError:
    ...     print("too late")
    too late
    """


STATES = ("open", "told", "cancelled", "expired", "retracted")  # what can have become of a trial


@dataclass(frozen=True)
class Trial:
    """An arm to try at a context, with its state and reward.

    .. versionadded:: 0.2

    Parameters
    ----------
    id
        Its number in the campaign, from 1.
    arm
        The arm to try.
    context
        Where to try it: a list of cells, or a mapping from columns to cells.
    state
        "open", "told", "cancelled", "expired" (its lease ran out) or "retracted".
    reward
        What was told, after all corrections; None before. A retracted trial keeps what it was told.
    eligible
        The arms among which it was picked; None for all.
    asked
        When it was asked for; None for outside data.
    until
        When its lease runs out; None for never.
    told
        When its reward was first told.
    why
        The reason given when it was last retracted or corrected.
    by
        Who asked for it, told, cancelled, retracted or corrected it last; None if unknown.

    See Also
    --------
    Campaign.ask : Returns one.

    Examples
    --------
    >>> trial = campaign.ask([0.2, 0.1])
    >>> trial.id, trial.state
    (3, 'open')
    """

    id: int
    arm: Label
    context: Any
    state: str
    reward: float | None = None
    eligible: tuple[Label, ...] | None = None
    asked: datetime | None = None
    until: datetime | None = None
    told: datetime | None = None
    why: str | None = None
    by: str | None = None


@dataclass(frozen=True)
class FrozenPolicy:
    """A frozen policy of a campaign: its name, its time, its hashes.

    .. versionadded:: 0.2

    Parameters
    ----------
    name
        Its name.
    at
        When it was frozen, in UTC.
    event
        The number of the last event that it rests on.
    log
        The hash of the log up to that event.
    sha256
        The hash of its ``.cgap`` file.
    recalled
        The trials it rests on that were retracted or corrected since.

    See Also
    --------
    Campaign.policies : Returns them.

    Examples
    --------
    >>> policy = campaign.freeze("v1")
    >>> frozen = campaign.policies()[0]
    >>> frozen.name, frozen.recalled
    ('v1', ())
    """

    name: str
    at: str
    event: int
    log: str
    sha256: str
    recalled: tuple[int, ...] = ()


@dataclass(frozen=True)
class Recalled:
    """A frozen policy that was learnt from a retracted or corrected trial.

    .. versionadded:: 0.2

    Parameters
    ----------
    policy
        The policy's name.
    contexts
        How many contexts were compared.
    changed
        At how many of them the policy would decide otherwise.

    Examples
    --------
    >>> policy = campaign.freeze("v1")
    >>> recalled = campaign.retract(trial, why="sensor was unplugged").policies[0]
    >>> recalled.policy, recalled.contexts
    ('v1', 2)
    """

    policy: str
    contexts: int
    changed: int


@dataclass(frozen=True)
class Recall:
    """Which frozen policies a retraction or correction affects.

    .. versionadded:: 0.2

    Parameters
    ----------
    trial
        The trial that was retracted or corrected.
    policies
        The frozen policies that rest on it.

    See Also
    --------
    Campaign.retract, Campaign.correct : Return one.

    Examples
    --------
    >>> policy = campaign.freeze("v1")
    >>> recall = campaign.retract(trial, why="sensor was unplugged")
    >>> recall.trial, len(recall.policies)
    (2, 1)
    """

    trial: int
    policies: tuple[Recalled, ...]


@dataclass(frozen=True)
class CampaignStatus:
    """The state of a campaign; print it.

    .. versionadded:: 0.2

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
        reward. Without a goal, the share of contexts seen at which the regret bound is 0.
    wanted
        The share at which exploring may end.
    asks_left
        About how many more rewards that takes, at the rate since there were half as many; None
        where that cannot be estimated.
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

    See Also
    --------
    Campaign.status : Returns it.

    Examples
    --------
    >>> status = campaign.status()
    >>> status.rewards, status.events
    ({'left': 2, 'right': 0}, 5)
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
        """Return the status for people: pairs of a name and a text.

        Examples
        --------
        >>> campaign.status().rows()[0]
        ('trials', '0 open, 2 told, 0 cancelled, 0 expired, 0 retracted')
        """
        settled = "unknown" if self.settled is None else f"{100 * self.settled:.1f} %"
        left = "unknown" if self.asks_left is None else f"about {self.asks_left}"
        tuned = "never"
        if self.tuning is not None:
            tuned = f"{self.tuning.chosen}, after {self.tuning.rewards} rewards"
        value = "unknown" if self.score is None else f"{self.score.value}"
        gain = "unknown" if self.score is None else f"{self.score.gain}"
        age = ("settled and value as of", f"event {self.looked_after}")
        return [
            ("trials", ", ".join(f"{count} {state}" for state, count in self.trials.items())),
            ("rewards", ", ".join(f"{arm}: {count}" for arm, count in self.rewards.items())),
            ("settled", f"{settled} of {100 * self.wanted:g} % wanted"),
            ("asks left", left),
            ("last tuning", tuned),
            ("value if deployed now", value),
            ("gain over the best arm", gain),
            *([] if self.score is None else self.score.spending()),
            ("events", str(self.events)),
            *([] if self.looked_after == self.events else [age]),
            ("log", self.log),
        ]

    def describe(self) -> dict[str, Any]:
        """Return the status as plain values, for machines.

        Examples
        --------
        >>> campaign.status().describe()["name"]
        'bench'
        """
        return {
            **vars(self),
            "trials": dict(self.trials),
            "rewards": {str(arm): count for arm, count in self.rewards.items()},
            "tuning": None if self.tuning is None else self.tuning.describe(),
            "score": None if self.score is None else self.score.describe(),
        }

    def __str__(self) -> str:
        size = max(len(name) for name, _ in self.rows())
        lines = [f"  {name:{size}}  {text}" for name, text in self.rows()]
        return "\n".join([f"campaign {self.name}", *lines])


_ABOUT = ("state", "arm", "reward", "asked", "until", "told", "why", "by")


def context_cells(trial: Trial) -> dict[str, Any]:
    """Return a trial's context by column; names of something else get "context." in front."""
    if isinstance(trial.context, Mapping):
        named = dict(trial.context)
    else:
        named = {f"x{place}": cell for place, cell in enumerate(trial.context)}
    cells = {}
    for name, cell in named.items():
        written = name
        while written in ("trial", *_ABOUT) or (written != name and written in named):
            written = f"context.{written}"
        cells[written] = cell
    return cells


def trials_frame(trials: Sequence[Trial]) -> Any:
    """Return trials as a DataFrame, one row each, indexed by their numbers."""
    import pandas as pd

    about = {name: [getattr(trial, name) for trial in trials] for name in _ABOUT}
    index = pd.Index([trial.id for trial in trials], name="trial", dtype="int64")
    frame = pd.DataFrame(about, index=index)
    frame["reward"] = frame["reward"].astype("float64")
    for name in ("asked", "until", "told"):
        frame[name] = pd.to_datetime(frame[name], utc=True)
    contexts = pd.DataFrame([context_cells(trial) for trial in trials], index=index)
    return frame.join(contexts)
