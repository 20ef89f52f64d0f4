"""The methods of campaigns, which are the same here and over HTTP, and what they accept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Self, cast

import numpy as np

from contextgap.base import checks
from contextgap.base.checks import Label, encode_label
from contextgap.learner import Learner, StoppingRule
from contextgap.learner.arguments import read_censored, read_cost, read_noise, read_told_costs
from contextgap.policy.policy import Policy
from contextgap.team.campaign.values import (
    STATES,
    CampaignStatus,
    FrozenPolicy,
    Recall,
    Trial,
    encode_given,
    is_plain_text,
    is_table,
    rows_of,
    trials_frame,
)

_LONGEST = 200
_MOST_ARMS = 10_000


class CampaignMethods:
    """What can be done with a campaign; ``_call`` does it with arguments that were checked."""

    _name: str
    _goal: StoppingRule | None

    def _call(self, method: str, /, *given: Any) -> Any:
        return getattr(self, f"_{method}")(*given)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections to the database; what takes long to replay is saved before.

        Examples
        --------
        >>> campaign.close()
        """
        self._call("close")

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self._name

    @property
    def goal(self) -> StoppingRule | None:
        """When exploring may end."""
        return self._goal

    @property
    def arms(self) -> tuple[Label, ...]:
        """The arms to choose from."""
        return cast("tuple[Label, ...]", self._call("arms"))

    def ask(
        self,
        contexts: Any = None,
        *,
        pool: Any = None,
        arms: Any = None,
        once: bool = False,
        key: str | None = None,
        lease: float | timedelta | None = None,
    ) -> Any:
        """Return a trial: the arm to try at a context.

        Parameters
        ----------
        contexts
            One context, or several to be tried as a batch, as for ``Learner.ask``.
        pool
            Instead of ``contexts``: a table of contexts one of which may be chosen.
        arms
            The eligible arms, all by default, as for ``Learner.ask``.
        once
            With a pool: never return a context and an arm that were told before or are pending.
        key
            Any text of yours that names this request. Asked again with the same key, the same
            trial is returned and nothing happens.
        lease
            How long the pick counts as pending; by default as ``create`` was given.

        Returns
        -------
        trial
            A ``Trial`` for one context or a pool; a list of them, one per row, for several.

        See Also
        --------
        tell : Take in the reward.
        cancel : Give the trial up.

        Examples
        --------
        >>> trial = campaign.ask([0.2, 0.1], key="sample 17")
        >>> trial == campaign.ask([0.2, 0.1], key="sample 17")
        True
        """
        check_key(key)
        return self._call("ask", _read_ask(contexts, pool, once, lease), arms, key)

    def tell(
        self,
        trial: Any = None,
        reward: Any = None,
        *,
        contexts: Any = None,
        arms: Any = None,
        eligible: Any = None,
        key: str | None = None,
        noise: Any = None,
        censored: Any = None,
        cost: Any = None,
    ) -> Any:
        """Take in the reward of a trial, or of outside data that nobody asked for.

        A reward that comes after its trial was cancelled, or its lease ran out, is taken all the
        same. To change a reward, ``correct`` it.

        Parameters
        ----------
        trial
            A trial or its number, or several; None for outside data.
        reward
            The reward, or one for each trial or context.
        contexts
            For outside data: one context, or several.
        arms
            For outside data: the arm tried, or one for each context.
        eligible
            For outside data: the arms that could have been tried, as for ``Learner.tell``.
        key
            Any text of yours that names this request. Told again with the same key, nothing
            happens.
        noise, censored
            The standard error of the reward, and whether it is censored, as for ``Learner.tell``. A
            reward that is corrected later has neither.
        cost
            What the trial cost, or one number for each trial or context.

        Returns
        -------
        trial
            The ``Trial`` as it is now, or a list of them; outside data become trials too.

        See Also
        --------
        ask : Choose the arm.
        correct : Change a reward later.

        Examples
        --------
        >>> trial = campaign.ask([0.2, 0.1])
        >>> campaign.tell(trial, 0.5).state
        'told'
        >>> outside = campaign.tell(contexts=[0.3, 0.1], arms="left", reward=0.4)
        """
        check_key(key)
        if trial is None:
            said, single = _read_record(contexts, arms, reward)
        else:
            if any(each is not None for each in (contexts, arms, eligible)):
                raise TypeError("contexts, arms and eligible are for outside data, without a trial")
            said, single = _read_told(trial, reward)
        count = len(said["arms"] if trial is None else said["trial"])
        said |= _read_about(noise, censored, cost, count, single)
        return self._call("tell", said, single, trial, eligible, key)

    def cancel(self, trial: Any, *, key: str | None = None) -> Trial:
        """Cancel an open trial; it no longer counts as pending.

        Parameters
        ----------
        trial
            A trial or its number.
        key
            As for ``ask``.

        Examples
        --------
        >>> trial = campaign.ask([0.2, 0.1])
        >>> campaign.cancel(trial).state
        'cancelled'
        """
        check_key(key)
        return cast("Trial", self._call("cancel", trial, key))

    def retract(self, trial: Any, why: str, *, key: str | None = None) -> Recall:
        """Take a reward back; the learner forgets it.

        Parameters
        ----------
        trial
            A trial or its number.
        why
            The reason, for those who read the log.
        key
            As for ``ask``.

        Returns
        -------
        recall
            Which frozen policies rest on the trial, and how many of their decisions would change.

        See Also
        --------
        correct : Replace the reward.

        Examples
        --------
        >>> recall = campaign.retract(trial, why="sensor was unplugged")
        >>> campaign.trial(trial.id).state
        'retracted'
        """
        return self._changed(trial, None, why, key)

    def correct(self, trial: Any, reward: float, why: str, *, key: str | None = None) -> Recall:
        """Replace a wrong reward by the right one.

        A retracted trial counts again from then on.

        Parameters
        ----------
        trial
            A trial or its number.
        reward
            The right reward.
        why
            The reason, for those who read the log.
        key
            As for ``ask``.

        Returns
        -------
        recall
            Which frozen policies rest on the trial, and how many of their decisions would change.

        See Also
        --------
        retract : Take the reward out.

        Examples
        --------
        >>> recall = campaign.correct(trial, 0.7, why="wrong unit")
        >>> campaign.trial(trial.id).reward
        0.7
        """
        return self._changed(trial, checks.reward("reward", reward), why, key)

    def _changed(self, trial: Any, reward: float | None, why: Any, key: str | None) -> Recall:
        if not isinstance(why, str) or not why.strip() or not is_plain_text(why):
            raise ValueError(f"why must say the reason in words, got {why!r}")
        check_key(key)
        return cast("Recall", self._call("change", trial, reward, why, key))

    def trials(self, state: str | Sequence[str] | None = None) -> Any:
        """Return the trials as a DataFrame, one row each, with the columns of their contexts.

        Parameters
        ----------
        state
            Only those in this state, or these: "open", "told", "cancelled", "expired", "retracted".

        See Also
        --------
        find_trials : The same as objects.

        Examples
        --------
        >>> campaign.trials()[["arm", "reward"]].values.tolist()
        [['left', 0.2], ['left', 0.5]]
        """
        return trials_frame(self.find_trials(state))

    def find_trials(
        self,
        state: str | Sequence[str] | None = None,
        *,
        after: int = 0,
        most: int | None = None,
    ) -> list[Trial]:
        """Return the trials, in the order in which they were asked for.

        Parameters
        ----------
        state
            As for ``trials``.
        after
            Only those with larger numbers.
        most
            Return at most so many.

        See Also
        --------
        trials : The same as a DataFrame.

        Examples
        --------
        >>> [trial.reward for trial in campaign.find_trials("told")]
        [0.2, 0.5]
        """
        states = [state] if isinstance(state, str) else None if state is None else list(state)
        check_states(states or ())
        start = checks.whole("after", after, least=0)
        return cast("list[Trial]", self._call("find_trials", states, start, most))

    def trial(self, number: int) -> Trial:
        """Return one trial.

        Parameters
        ----------
        number
            Its number.

        Examples
        --------
        >>> campaign.trial(trial.id).arm
        'left'
        """
        return cast("Trial", self._call("trial", read_number(number)))

    def recommend(self, contexts: Any, *, arms: Any = None) -> Any:
        """Return the arm to deploy, as ``Learner.recommend`` does.

        Parameters
        ----------
        contexts
            One context, or many.
        arms
            The eligible arms, all by default.

        Examples
        --------
        >>> campaign.recommend([0.2, 0.1])
        'left'
        """
        return self._call("recommend", contexts, arms)

    def learner(self) -> Learner:
        """Return a copy of the learner; changes to it do not affect the campaign.

        Examples
        --------
        >>> campaign.learner().counts
        {'left': 2, 'right': 0}
        """
        return cast("Learner", self._call("learner"))

    def freeze(
        self,
        name: str,
        *,
        fallback: Label | None = None,
        tolerance: float | None = None,
        key: str | None = None,
    ) -> Policy:
        """Freeze the current decision rule and store it under a name.

        Its card carries the hash of the log up to now, from which ``rebuild`` makes it again.

        Parameters
        ----------
        name
            The policy's name, new in this campaign.
        fallback, tolerance
            As for ``Learner.freeze``.
        key
            As for ``ask``.

        See Also
        --------
        policy : Return a policy frozen earlier.
        rebuild : Make it again from the log.

        Examples
        --------
        >>> policy = campaign.freeze("v1")
        >>> campaign.policy("v1").recommend([0.2, 0.1])
        'left'
        """
        check_name("name", name)
        check_key(key)
        if tolerance is not None:
            tolerance = checks.real("tolerance", tolerance)
        safe = None if fallback is None else encode_label(fallback)
        return cast("Policy", self._call("freeze", name, safe, tolerance, key))

    def policies(self) -> tuple[FrozenPolicy, ...]:
        """Return all frozen policies, with trials retracted or corrected since.

        Examples
        --------
        >>> policy = campaign.freeze("v1")
        >>> [frozen.name for frozen in campaign.policies()]
        ['v1']
        """
        return cast("tuple[FrozenPolicy, ...]", self._call("policies"))

    def policy(self, name: str) -> Policy:
        """Return a frozen policy.

        Parameters
        ----------
        name
            Its name.

        Examples
        --------
        >>> policy = campaign.freeze("v1")
        >>> campaign.policy("v1").arms
        ('left', 'right')
        """
        return cast("Policy", self._call("policy", name))

    def rebuild(self, name: str) -> Policy:
        """Return a frozen policy, rebuilt from the log; its file has the same bytes.

        Parameters
        ----------
        name
            Its name.

        Examples
        --------
        >>> policy = campaign.freeze("v1")
        >>> campaign.rebuild("v1").provenance == policy.provenance
        True
        """
        return cast("Policy", self._call("rebuild", name))

    def tune(self, criterion: str = "evidence", *, key: str | None = None) -> None:
        """Learn the hyperparameters again from all rewards, as ``Learner.tune`` does.

        Parameters
        ----------
        criterion
            "evidence" or "loo".
        key
            As for ``ask``.

        Examples
        --------
        >>> campaign = cg.Campaign.create("bench.db", "linear", [0, 1], kernel=cg.Linear())
        >>> _ = campaign.tell(contexts=contexts[:10], arms=[0, 1] * 5, reward=contexts[:10, 0])
        >>> campaign.tune()
        >>> campaign.status().tuning.rewards
        10
        """
        check_key(key)
        self._call("append", "tune", {"criterion": criterion}, key)

    def add_arm(
        self,
        label: Label,
        features: Any = None,
        *,
        cost: float | None = None,
        key: str | None = None,
    ) -> None:
        """Add an arm, as ``Learner.add_arm`` does.

        Parameters
        ----------
        label
            A new label.
        features
            Its features, where arms have them.
        cost
            What a trial of it costs, where costs of arms are known.
        key
            As for ``ask``.

        Examples
        --------
        >>> campaign.add_arm("up")
        >>> campaign.arms
        ('left', 'right', 'up')
        """
        check_key(key)
        known = None if features is None else encode_given(features, called="features")
        request = {"arm": encode_new_label(label), "features": known}
        if cost is not None:
            request["cost"] = read_cost("cost", cost)
        self._call("append", "add_arm", request, key)

    def remove_arm(self, label: Label, *, key: str | None = None) -> None:
        """Never choose an arm again, as ``Learner.remove_arm`` says.

        Parameters
        ----------
        label
            One of ``arms``.
        key
            As for ``ask``.

        Examples
        --------
        >>> campaign.remove_arm("left")
        >>> campaign.arms
        ('right',)
        """
        check_key(key)
        self._call("append", "remove_arm", {"arm": encode_label(label)}, key)

    def status(self, *, fresh: bool = True) -> CampaignStatus:
        """Return the state of the campaign: trials, rewards, progress and score.

        Parameters
        ----------
        fresh
            Whether to compute the settled share and the score now; otherwise they are cached until
            there are 5 % more rewards.

        Examples
        --------
        >>> campaign.status().trials["told"]
        2
        """
        return cast("CampaignStatus", self._call("status", fresh))


def check_name(called: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{called} must be text, got {name!r}")
    if not name.strip() or len(name) > _LONGEST or not name.isprintable():
        raise ValueError(f"{called} must be 1 to {_LONGEST} printable letters, got {name!r}")
    if name in (".", ".."):
        raise ValueError(f"{called} must be a name, which {name!r} is not in an address")


def check_key(key: Any) -> None:
    if key is not None:
        check_name("key", key)


def check_states(states: Sequence[str]) -> None:
    for state in states:
        if state not in STATES:
            raise ValueError(f"state must be one of {STATES}, got {state!r}")


def check_arms(arms: Any) -> None:
    count = arms if isinstance(arms, int) else len(arms) if hasattr(arms, "__len__") else 0
    if count > _MOST_ARMS:
        raise ValueError(f"arms must be at most {_MOST_ARMS}, got {count}")


def encode_new_label(label: Label) -> Any:
    """Return the label of a new arm as JSON; raise if its text could not be shown again."""
    for part in label if isinstance(label, tuple) else (label,):
        if isinstance(part, tuple):
            encode_new_label(part)
        elif isinstance(part, str) and not is_plain_text(part):
            raise ValueError(f"arms must be text without NUL and lone surrogates, got {label!r}")
    return encode_label(label)


def read_number(trial: Any) -> int:
    return trial.id if isinstance(trial, Trial) else checks.whole("trial", trial, least=1)


def read_lease(lease: float | timedelta) -> float | str:
    length = lease.total_seconds() if isinstance(lease, timedelta) else lease
    if length == math.inf:
        return "ever"
    return checks.positive("lease", length, "seconds, a timedelta, or math.inf for ever")


def _read_ask(contexts: Any, pool: Any, once: bool, lease: Any) -> dict[str, Any]:
    kept = None if lease is None else read_lease(lease)
    if pool is not None:
        if contexts is not None:
            raise TypeError("contexts must be left out where pool= gives those to choose from")
        request = {"pool": encode_given(pool, called="pool"), "lease": kept}
        return {**request, "once": True} if once else request
    if once:
        raise TypeError("once= is about a pool; give pool= too, or leave it out")
    if contexts is None:
        raise TypeError("contexts must be given, or pool= to choose one from, got None")
    return {"contexts": _some(contexts), "lease": kept}


def _some(contexts: Any) -> dict[str, Any]:
    encoded = encode_given(contexts)
    if not rows_of(encoded):
        raise ValueError("contexts must have at least one row, got none")
    return encoded


def _read_told(trial: Any, reward: Any) -> tuple[dict[str, Any], bool]:
    if isinstance(trial, Trial) or np.ndim(trial) == 0:
        return {"trial": [read_number(trial)], "reward": [checks.reward("reward", reward)]}, True
    numbers = [read_number(each) for each in trial]
    if len(set(numbers)) < len(numbers):
        raise ValueError("trial must name every trial once, got one twice")
    rewards = checks.finite_vector("reward", reward, checks.reward).tolist()
    checks.same_length(trial=len(numbers), reward=len(rewards))
    return {"trial": numbers, "reward": rewards}, False


def _read_record(contexts: Any, arms: Any, rewards: Any) -> tuple[dict[str, Any], bool]:
    if contexts is None or arms is None or rewards is None:
        raise TypeError("tell needs a trial, or contexts=, arms= and reward= for outside data")
    encoded = _some(contexts)
    if single := not is_table(encoded):
        labels, values = [arms], [checks.reward("reward", rewards)]
    else:
        values = checks.finite_vector("reward", rewards, checks.reward).tolist()
        labels = arms.to_list() if hasattr(arms, "to_list") else list(arms)
        checks.same_length(contexts=len(rows_of(encoded)), arms=len(labels), reward=len(values))
    return {"contexts": encoded, "arms": [*map(encode_label, labels)], "rewards": values}, single


def _read_about(
    noise: Any, censored: Any, cost: Any, count: int, single: bool
) -> dict[str, list[Any]]:
    """Return rewards' standard errors, which are censored, and costs, where that was said."""
    cut = read_censored(censored, count, single=single)
    errors = read_noise(noise, cut, count, single=single)
    said = {"noise": errors, "censored": cut}
    about = {name: values.tolist() for name, values in said.items() if values.any()}
    if cost is not None:
        about["cost"] = read_told_costs(cost, count, single=single).tolist()
    return about
