"""The methods of campaigns, which are the same here and over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Self, cast

from contextgap.base.labels import Label
from contextgap.learner import Learner, StoppingRule
from contextgap.policy.policy import Policy
from contextgap.team.campaign.values import (
    CampaignStatus,
    FrozenPolicy,
    Recall,
    Trial,
    trials_frame,
)


class CampaignMethods:
    """What can be done with a campaign; ``_call`` does it, with a method for each."""

    _name: str
    _goal: StoppingRule | None

    def _call(self, method: str, /, **given: Any) -> Any:
        """Do what a public method is asked for."""
        return getattr(self, f"_{method}")(**given)

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
            How long the pick counts as pending if its reward does not come; by default as long as
            ``create`` was given.

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
        return self._call(
            "ask", contexts=contexts, pool=pool, arms=arms, once=once, key=key, lease=lease
        )

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
            A trial or its number; several at once are told together or not at all. None for
            outside data.
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
            The standard error of the reward, and whether it is censored, or one of each for each
            trial or context, as for ``Learner.tell``. A reward that is corrected later has neither.
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
        return self._call(
            "tell",
            trial=trial,
            reward=reward,
            contexts=contexts,
            arms=arms,
            eligible=eligible,
            key=key,
            noise=noise,
            censored=censored,
            cost=cost,
        )

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
        return cast("Trial", self._call("cancel", trial=trial, key=key))

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
        return cast("Recall", self._call("retract", trial=trial, why=why, key=key))

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
        return cast("Recall", self._call("correct", trial=trial, reward=reward, why=why, key=key))

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
        return cast("list[Trial]", self._call("find_trials", state=state, after=after, most=most))

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
        return cast("Trial", self._call("trial", number=number))

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
        return self._call("recommend", contexts=contexts, arms=arms)

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
        return cast(
            "Policy",
            self._call("freeze", name=name, fallback=fallback, tolerance=tolerance, key=key),
        )

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
        return cast("Policy", self._call("policy", name=name))

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
        return cast("Policy", self._call("rebuild", name=name))

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
        self._call("tune", criterion=criterion, key=key)

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
        self._call("add_arm", label=label, features=features, cost=cost, key=key)

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
        self._call("remove_arm", label=label, key=key)

    def status(self, *, fresh: bool = True) -> CampaignStatus:
        """Return the state of the campaign: trials, rewards, progress and score.

        Parameters
        ----------
        fresh
            Whether to compute the settled share and the score now. Otherwise they are cached, and
            computed anew whenever there are 5 % more rewards; the status says of when.

        Examples
        --------
        >>> campaign.status().trials["told"]
        2
        """
        return cast("CampaignStatus", self._call("status", fresh=fresh))
