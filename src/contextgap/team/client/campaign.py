"""Campaign: a campaign of a service, used as if it were here."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Self
from urllib.parse import quote
from uuid import uuid4

import numpy as np

from contextgap.base.labels import Label, decode_label, encode_label, label_array, read_labels
from contextgap.learner import Learner, StoppingRule
from contextgap.policy.policy import Policy
from contextgap.team.campaign import trials as requests
from contextgap.team.campaign.codec import (
    contexts_json,
    read_frozen_json,
    read_recall_json,
    read_status_json,
    read_trial_json,
)
from contextgap.team.campaign.progress import decode_goal, encode_goal
from contextgap.team.campaign.values import (
    CampaignStatus,
    FrozenPolicy,
    Recall,
    Trial,
    trials_frame,
)
from contextgap.team.client.arms import eligible_json, tried_json
from contextgap.team.client.connection import Connection
from contextgap.team.client.settings import settings_json

_PATIENCE = 60.0  # seconds
_PAGE = 5000  # trials in one request
_WEEK = timedelta(days=7)


class Campaign:
    """A campaign of a service, with the methods of ``cg.Campaign``.

    ``create`` makes one and ``open`` opens it. Answers and errors are those of ``cg.Campaign``.
    Requests are repeated while the service cannot be reached, for a minute by default; every one
    that changes something has a key, so that it happens once. Several threads may use it at once.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._path = f"/v1/campaigns/{quote(name, safe='')}"
        goal = connection.get(self._path)["goal"]
        self._goal = decode_goal(goal)

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        arms: Any,
        *,
        goal: StoppingRule | None = None,
        lease: float | timedelta = _WEEK,
        key: str | None = None,
        token: str | None = None,
        patience: float = _PATIENCE,
        **settings: Any,
    ) -> Self:
        """Begin a campaign.

        Parameters
        ----------
        url
            Where the service is, such as ``http://127.0.0.1:8000``, or the address with a token
            that ``contextgap serve`` prints.
        name, arms, goal, lease, key
            As for ``cg.Campaign.create``.
        token
            The secret that ``contextgap serve token create`` showed; may be set as
            ``CONTEXTGAP_TOKEN`` instead.
        patience
            Seconds for which a request is repeated if the service cannot be reached.
        settings
            All others of ``Learner``.
        """
        requests.check_name("name", name)
        connection = Connection(url, token, patience)
        target = encode_goal(goal)
        body = {
            "name": name,
            "arms": arms if isinstance(arms, int) else [*map(encode_label, read_labels(arms))],
            "goal": None if target is None or goal is None else _goal_json(goal),
            "lease": _lease_json(lease),
            "settings": settings_json(settings, arms),
            "key": _key(key),
        }
        connection.post("/v1/campaigns", body)
        return cls(connection, name)

    @classmethod
    def open(
        cls, url: str, name: str, *, token: str | None = None, patience: float = _PATIENCE
    ) -> Self:
        """Open a campaign that exists.

        Parameters
        ----------
        url
            As for ``create``.
        name
            The campaign's name.
        token, patience
            As for ``create``.
        """
        return cls(Connection(url, token, patience), name)

    @staticmethod
    def names(url: str, *, token: str | None = None) -> tuple[str, ...]:
        """Return the names of all campaigns that the token may see.

        Parameters
        ----------
        url, token
            As for ``create``.
        """
        connection = Connection(url, token, _PATIENCE)
        try:
            return tuple(connection.get("/v1/campaigns")["campaigns"])
        finally:
            connection.close()

    def __repr__(self) -> str:
        return f"Campaign({self._name!r}, {self._connection.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections to the service."""
        self._connection.close()

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
        return tuple(map(decode_label, self._get("arms")["arms"]))

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
        contexts, pool, arms, once, key, lease
            As for ``cg.Campaign.ask``.
        """
        body = {
            "contexts": None if contexts is None else contexts_json(contexts),
            "pool": None if pool is None else contexts_json(pool, "pool"),
            "arms": eligible_json(arms, lambda: self.arms),
            "lease": None if lease is None else _lease_json(lease),
            "key": _key(key),
            **({"once": True} if once else {}),  # which services of 0.2 do not know
        }
        return _trials(self._post("ask", body))

    def tell(
        self,
        trial: Any = None,
        reward: Any = None,
        *,
        contexts: Any = None,
        arms: Any = None,
        eligible: Any = None,
        key: str | None = None,
    ) -> Any:
        """Take in the reward of a trial, or of something that was tried without being asked for.

        Parameters
        ----------
        trial, reward, contexts, arms, eligible, key
            As for ``cg.Campaign.tell``.
        """
        if trial is not None and not (contexts is None and arms is None and eligible is None):
            raise TypeError("contexts, arms and eligible are for outside data, without a trial")
        body: dict[str, Any] = {"key": _key(key)}
        if trial is not None:
            numbers, rewards, single = requests.read_told(trial, reward)
            body["trial"] = numbers[0] if single else numbers
            body["reward"] = rewards[0] if single else rewards
        else:
            record, single = requests.read_record(contexts, arms, reward)
            body["contexts"] = contexts_json(contexts)
            body["arms"] = tried_json(arms, not single)
            body["reward"] = record["rewards"][0] if single else record["rewards"]
            body["eligible"] = eligible_json(eligible, lambda: self.arms)
        return _trials(self._post("tell", body))

    def cancel(self, trial: Any, *, key: str | None = None) -> Trial:
        """Take back an open trial: it will not be tried, and stops counting as pending.

        Parameters
        ----------
        trial, key
            As for ``cg.Campaign.cancel``.
        """
        number = requests.read_trial_number(trial)
        found = self._post(f"trials/{number}/cancel", {"key": _key(key)})
        return read_trial_json(found["trial"])

    def retract(self, trial: Any, why: str, *, key: str | None = None) -> Recall:
        """Take a reward back: it was never told, as far as the learner is concerned.

        Parameters
        ----------
        trial, why, key
            As for ``cg.Campaign.retract``.
        """
        number = requests.read_trial_number(trial)
        requests.check_why(why)
        found = self._post(f"trials/{number}/retract", {"why": why, "key": _key(key)})
        return read_recall_json(found)

    def correct(self, trial: Any, reward: float, why: str, *, key: str | None = None) -> Recall:
        """Replace a reward by another, as if that had been told in the first place.

        Parameters
        ----------
        trial, reward, why, key
            As for ``cg.Campaign.correct``.
        """
        (number,), (value,), _ = requests.read_told(requests.read_trial_number(trial), reward)
        requests.check_why(why)
        body = {"reward": value, "why": why, "key": _key(key)}
        return read_recall_json(self._post(f"trials/{number}/correct", body))

    def trials(self, state: str | Sequence[str] | None = None) -> Any:
        """Return the trials as a DataFrame, one row each, with the columns of their contexts.

        Parameters
        ----------
        state
            As for ``cg.Campaign.trials``.
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
        state, after, most
            As for ``cg.Campaign.find_trials``.
        """
        how = {} if state is None else {"state": [state] if isinstance(state, str) else list(state)}
        found: list[Trial] = []
        while most is None or len(found) < most:
            size = _PAGE if most is None else min(_PAGE, most - len(found))
            page = self._get("trials", **how, after=after, most=size)
            found += map(read_trial_json, page["trials"])
            if page["next"] is None:
                break
            after = page["next"]
        return found

    def trial(self, number: int) -> Trial:
        """Return one trial.

        Parameters
        ----------
        number
            Its number.
        """
        wanted = requests.read_trial_number(number)
        return read_trial_json(self._get(f"trials/{wanted}")["trial"])

    def recommend(self, contexts: Any, *, arms: Any = None) -> Any:
        """Return the arm to deploy, given what is known now, as ``Learner.recommend`` does.

        Parameters
        ----------
        contexts, arms
            As for ``cg.Campaign.recommend``.
        """
        body = {
            "contexts": contexts_json(contexts),
            "arms": eligible_json(arms, lambda: self.arms),
        }
        found = self._post("recommend", body)
        if "arm" in found:
            return decode_label(found["arm"])
        labels = tuple(map(decode_label, found["arms"]))
        return label_array(labels, np.arange(len(labels)))

    def learner(self) -> Learner:
        """Return a copy of the learner, to look at whatever ``Learner`` tells, or to go on with."""
        return Learner.load(io.BytesIO(self._download("learner")))

    def freeze(
        self,
        name: str,
        *,
        fallback: Label | None = None,
        tolerance: float | None = None,
        key: str | None = None,
    ) -> Policy:
        """Return the current decision rule, and keep it under a name.

        Parameters
        ----------
        name, fallback, tolerance, key
            As for ``cg.Campaign.freeze``.
        """
        requests.check_name("name", name)
        safe = None if fallback is None else encode_label(fallback)
        body = {"name": name, "fallback": safe, "tolerance": tolerance, "key": _key(key)}
        self._post("policies", body)
        return self.policy(name)

    def policies(self) -> tuple[FrozenPolicy, ...]:
        """Return what is known of all frozen policies, and which trials they rest on in error."""
        return tuple(map(read_frozen_json, self._get("policies")["policies"]))

    def policy(self, name: str) -> Policy:
        """Return a frozen policy.

        Parameters
        ----------
        name
            Its name.
        """
        return self._load(name, "cgap")

    def rebuild(self, name: str) -> Policy:
        """Return a frozen policy, made again from the log alone; its file has the same bytes.

        Parameters
        ----------
        name
            Its name.
        """
        return self._load(name, "rebuilt")

    def tune(self, criterion: str = "evidence", *, key: str | None = None) -> None:
        """Learn the hyperparameters again from all rewards, as ``Learner.tune`` does.

        Parameters
        ----------
        criterion, key
            As for ``cg.Campaign.tune``.
        """
        self._post("tune", {"criterion": criterion, "key": _key(key)})

    def add_arm(self, label: Label, features: Any = None, *, key: str | None = None) -> None:
        """Add an arm, as ``Learner.add_arm`` does.

        Parameters
        ----------
        label, features, key
            As for ``cg.Campaign.add_arm``.
        """
        known = None if features is None else contexts_json(features, "features")
        self._post("arms/add", {"arm": encode_label(label), "features": known, "key": _key(key)})

    def remove_arm(self, label: Label, *, key: str | None = None) -> None:
        """Never choose an arm again, as ``Learner.remove_arm`` says.

        Parameters
        ----------
        label, key
            As for ``cg.Campaign.remove_arm``.
        """
        self._post("arms/remove", {"arm": encode_label(label), "key": _key(key)})

    def status(self, *, fresh: bool = True) -> CampaignStatus:
        """Return how the campaign stands.

        Parameters
        ----------
        fresh
            As for ``cg.Campaign.status``.
        """
        return read_status_json(self._get("status", fresh=fresh))

    def _get(self, rest: str, **parameters: Any) -> Any:
        return self._connection.get(f"{self._path}/{rest}", **parameters)

    def _post(self, rest: str, body: dict[str, Any]) -> Any:
        return self._connection.post(f"{self._path}/{rest}", body)

    def _download(self, rest: str) -> bytes:
        return self._connection.download(f"{self._path}/{rest}")

    def _load(self, name: str, how: str) -> Policy:
        content = self._download(f"policies/{quote(name, safe='')}/{how}")
        return Policy.load(io.BytesIO(content))


def _key(key: str | None) -> str:
    """Return a key that names this call alone, if none is given."""
    requests.check_key(key)
    return key or uuid4().hex


def _lease_json(lease: float | timedelta) -> float | str:
    length = requests.seconds("lease", lease)
    return "ever" if length is None else length


def _goal_json(goal: StoppingRule) -> dict[str, Any]:
    reference = contexts_json(goal.given, "reference")
    return {"tolerance": goal.tolerance, "share": goal.share, "reference": reference}


def _trials(found: dict[str, Any]) -> Any:
    if "trial" in found:
        return read_trial_json(found["trial"])
    return [read_trial_json(trial) for trial in found["trials"]]
