"""What is known of frozen policies, and of trials they rest on that were taken back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FrozenPolicy:
    """What is known of a frozen policy.

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
    """

    name: str
    at: str
    event: int
    log: str
    sha256: str
    recalled: tuple[int, ...] = ()


@dataclass(frozen=True)
class Recalled:
    """A frozen policy that rests on a trial that was taken back.

    Parameters
    ----------
    policy
        The policy's name.
    contexts
        How many contexts were looked at.
    changed
        At how many of them the policy would decide otherwise.
    """

    policy: str
    contexts: int
    changed: int


@dataclass(frozen=True)
class Recall:
    """What a retraction or correction means for what was frozen before.

    Parameters
    ----------
    trial
        The trial that was retracted or corrected.
    policies
        The frozen policies that rest on it.
    """

    trial: int
    policies: tuple[Recalled, ...]
