"""Logs of other tools: Vowpal Wabbit, Open Bandit Pipeline (obp), MABWiser, JSON lines.

Every reader returns a ``Log``, whose ``fit`` makes a learner of it::

    policy = cg.io.read_vw("log.vw").fit().freeze()
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contextgap.base import checks
from contextgap.base.arrays import FloatArray
from contextgap.base.checks import Label
from contextgap.learner import Learner
from contextgap.policy.answers import read_propensities
from contextgap.tables.files import (
    JSON_LINES,
    VOWPAL,
    Sheet,
    Trials,
    check_file,
    eligible_arms,
    labels_of,
    read_names,
    read_path,
    read_sheet,
)

__all__ = ["Log", "read_jsonl", "read_mabwiser", "read_obp", "read_vw", "to_obp"]


@dataclass(frozen=True, eq=False)
class Log:
    """Logged trials.

    .. versionadded:: 0.3

    Parameters
    ----------
    contexts
        An array, or a table with names of columns, as learners take them.
    arms
        The arm tried at each context.
    rewards
        What it gave.
    propensities
        The probability with which it was chosen; None if that is unknown.
    eligible
        The arms that could have been chosen, row by row; None for all.
    labels
        All arms, those that were never tried included.
    features
        Features of arms, for ``fit(features=log.features)``; None if there are none.

    Examples
    --------
    >>> log = cg.io.read_mabwiser(["left", "right"], [0.1, 0.4], [[0.0], [1.0]])
    >>> log.labels, log.propensities
    (('left', 'right'), None)
    """

    contexts: Any
    arms: Sequence[Label]
    rewards: FloatArray
    propensities: FloatArray | None
    eligible: Sequence[Sequence[Label]] | None
    labels: tuple[Label, ...]
    features: Mapping[Label, Any] | None = None

    def __len__(self) -> int:
        return len(self.rewards)

    def fit(self, **settings: Any) -> Learner:
        """Return a learner that has learnt from the whole log, propensities included.

        Parameters
        ----------
        settings
            Those of ``Learner``.

        See Also
        --------
        Learner.fit : The same for arrays.

        Examples
        --------
        >>> log = cg.io.read_mabwiser(["left", "right"], [0.1, 0.4], [[0.0], [1.0]])
        >>> log.fit(kernel=cg.Gaussian(1.0)).counts
        {'left': 1, 'right': 1}
        """
        learner = Learner(self.labels, **settings)
        return learner.fit(
            self.contexts,
            list(self.arms),
            self.rewards,
            eligible=self.eligible,
            propensities=self.propensities,
        )


def read_vw(path: str | os.PathLike[str]) -> Log:
    r"""Return a log of Vowpal Wabbit: ``cb`` or ``cb_adf`` in a .vw file, or .dsjson; also .gz.

    Rewards are minus the costs. Arms are the numbers of actions or, where actions have features,
    what these say. A feature that is written ``name=text`` is a column of text; others are numbers,
    0 where they are left out.

    .. versionadded:: 0.3

    Examples
    --------
    >>> with open("log.vw", "w") as file:
    ...     _ = file.write("1:2.0:0.5 | x:0.5\n2:0.0:0.5 | x:-0.5\n")
    >>> log = cg.io.read_vw("log.vw")
    >>> log.arms, log.rewards
    ([1, 2], array([-2.,  0.]))
    """
    where = read_path(path)
    check_file(where, VOWPAL)
    sheet = read_sheet(where)
    eligible = ("eligible",) if "eligible" in sheet.columns else ()
    return _log(sheet, Trials("arm", "reward", propensity="propensity", eligible=eligible))


def read_jsonl(
    path: str | os.PathLike[str],
    *,
    arm: str = "arm",
    reward: str = "reward",
    propensity: str | None = None,
    eligible: str | None = None,
    context: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
) -> Log:
    """Return a log in JSON lines, an object for each trial; also .gz.

    Names in nested objects are joined by dots, such as ``user.age``.

    .. versionadded:: 0.3

    Parameters
    ----------
    path
        A .jsonl or .ndjson file.
    arm
        The name of the arm tried.
    reward
        That of the reward it gave.
    propensity
        That of the probability with which it was chosen.
    eligible
        That of the arms that could have been chosen, such as ``"a|b"``.
    context
        The names known before; all others by default.
    exclude
        Names that are no context.

    Examples
    --------
    >>> with open("log.jsonl", "w") as file:
    ...     _ = file.write('{"x": 0.5, "arm": "left", "reward": 1.0}')
    >>> log = cg.io.read_jsonl("log.jsonl")
    >>> log.arms, log.rewards
    (['left'], array([1.]))
    """
    where = read_path(path)
    check_file(where, JSON_LINES)
    trials = Trials(
        arm,
        reward,
        context=None if context is None else read_names("context", context),
        exclude=tuple(exclude),
        propensity=propensity,
        eligible=() if eligible is None else (eligible,),
    )
    return _log(read_sheet(where), trials)


def _log(sheet: Sheet, trials: Trials) -> Log:
    texts = trials.arms(sheet)
    listed = [cell for name in trials.eligible for cell in sheet.cells_of(name) if cell]
    known = [arm.strip() for cell in listed for arm in str(cell).split("|")]
    labels = labels_of([*texts, *known])
    arms = tuple(dict.fromkeys(labels.values()))
    chances = None if trials.propensity is None else sheet.numbers([trials.propensity])[:, 0]
    return Log(
        contexts=sheet.table(trials.columns(sheet)),
        arms=[labels[text] for text in texts],
        rewards=sheet.rewards(trials.reward),
        propensities=read_propensities(chances, len(sheet)),
        eligible=eligible_arms(sheet, trials.eligible, arms) if trials.eligible else None,
        labels=arms,
    )


def read_obp(bandit_feedback: Mapping[str, Any]) -> Log:
    """Return the ``bandit_feedback`` dictionary of Open Bandit Pipeline as a log.

    Where there are several positions, the position is the last number of a context: an arm is
    chosen for each of them.

    .. versionadded:: 0.3

    Parameters
    ----------
    bandit_feedback
        What ``dataset.obtain_batch_bandit_feedback()`` returns.

    See Also
    --------
    io.to_obp : The other way.

    Examples
    --------
    >>> feedback = {
    ...     "n_actions": 2,
    ...     "context": contexts[:3],
    ...     "action": np.array([0, 1, 1]),
    ...     "reward": np.array([0.0, 1.0, 1.0]),
    ...     "pscore": np.full(3, 0.5),
    ... }
    >>> cg.io.read_obp(feedback).propensities
    array([0.5, 0.5, 0.5])
    """
    missing = [name for name in ("action", "reward", "context") if name not in bandit_feedback]
    if missing:
        raise ValueError(f"bandit_feedback must have {missing[0]!r}; it has {[*bandit_feedback]}")
    actions = np.asarray(bandit_feedback["action"])
    contexts = np.asarray(bandit_feedback["context"], dtype=np.float64)
    positions = bandit_feedback.get("position")
    if positions is not None and len(np.unique(positions)) > 1:
        contexts = np.column_stack([contexts, positions])
    rewards = checks.finite_vector("reward", bandit_feedback["reward"])
    checks.same_length(context=len(contexts), action=len(actions), reward=len(rewards))
    labels = tuple(range(int(bandit_feedback.get("n_actions", actions.max() + 1))))
    described = bandit_feedback.get("action_context")
    return Log(
        contexts=contexts,
        arms=actions.tolist(),
        rewards=rewards,
        propensities=read_propensities(bandit_feedback.get("pscore"), len(rewards)),
        eligible=None,
        labels=labels,
        features=None if described is None else dict(zip(labels, described, strict=True)),
    )


def to_obp(log: Log) -> dict[str, Any]:
    """Return a log as the ``bandit_feedback`` dictionary of Open Bandit Pipeline.

    .. versionadded:: 0.3

    Parameters
    ----------
    log
        A log whose contexts are numbers. Actions are places in ``log.labels``.

    See Also
    --------
    io.read_obp : The other way.

    Examples
    --------
    >>> log = cg.io.read_mabwiser(["left", "right"], [0.1, 0.4], np.eye(2))
    >>> cg.io.to_obp(log)["action"].tolist()
    [0, 1]
    """
    checks.instance("log", log, Log, "cg.io.read_vw(path)")
    places = {label: place for place, label in enumerate(log.labels)}
    contexts = log.contexts
    if hasattr(contexts, "cells"):
        contexts = np.column_stack([np.asarray(column) for column in contexts.cells])
    contexts = np.asarray(contexts)
    if contexts.dtype.kind not in "fiub":
        raise TypeError("contexts must be numbers throughout: obp takes no text")
    features = log.features
    return {
        "n_rounds": len(log),
        "n_actions": len(log.labels),
        "action": np.array([places[arm] for arm in log.arms], dtype=int),
        "position": None,
        "reward": np.asarray(log.rewards),
        "pscore": None if log.propensities is None else np.asarray(log.propensities),
        "context": contexts,
        "action_context": (
            np.eye(len(log.labels))
            if features is None
            else np.array([features[label] for label in log.labels])
        ),
    }


def read_mabwiser(decisions: Any, rewards: Any, contexts: Any = None) -> Log:
    """Return the arrays that MABWiser's ``fit`` takes as a log.

    .. versionadded:: 0.3

    Parameters
    ----------
    decisions
        The arms tried.
    rewards
        What they gave.
    contexts
        Where; None for a bandit without contexts, which then are all the same.

    Examples
    --------
    >>> log = cg.io.read_mabwiser(decisions=[1, 2], rewards=[0.1, 0.4], contexts=[[0.0], [1.0]])
    >>> log.labels
    (1, 2)
    """
    arms = decisions.tolist() if hasattr(decisions, "tolist") else list(decisions)
    values = checks.finite_vector("rewards", rewards)
    where = np.zeros((len(values), 1)) if contexts is None else contexts
    checks.same_length(decisions=len(arms), rewards=len(values), contexts=len(where))
    return Log(where, arms, values, None, None, tuple(sorted(set(arms), key=str)))
