"""Campaigns of a service over HTTP, with the methods of ``cg.Campaign``."""

from __future__ import annotations

import io
import os
import random
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Self
from urllib.parse import quote
from uuid import uuid4

import numpy as np

from contextgap.base.checks import Label, decode_label, encode_label, label_array, read_labels
from contextgap.base.components import Component
from contextgap.learner import Learner, StoppingRule
from contextgap.models.tuning import Tuning
from contextgap.policy.policy import Policy
from contextgap.policy.state import Card
from contextgap.team.campaign import values
from contextgap.team.campaign.methods import (
    CampaignMethods,
    check_key,
    check_name,
    read_lease,
    read_number,
)
from contextgap.team.campaign.values import (
    CampaignStatus,
    ConflictError,
    FrozenPolicy,
    NotFoundError,
    Recall,
    Recalled,
    Trial,
    decode_goal,
    encode_goal,
)

try:
    import httpx
except ImportError as missing:
    raise ImportError(
        f"the client needs {missing.name}; pip install 'contextgap[client]' brings it"
    ) from None

__all__ = ["Campaign"]
TOKEN = "CONTEXTGAP_TOKEN"  # the environment variable that may hold a token
_PATIENCE = 60.0
_PAGE = 5000  # trials in one request
_WEEK = timedelta(days=7)
_AGAIN = (429, 502, 503, 504)  # later there may be another answer
_FIRST, _LONGEST = 0.05, 5.0  # seconds between two tries
_PATHS = {"tune": "tune", "add_arm": "arms/add", "remove_arm": "arms/remove"}
_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
_RAISED = {each.__name__: each for each in (ConflictError, NotFoundError, TypeError, ValueError)}


class Campaign(CampaignMethods):
    """A campaign of a service, with the methods of ``cg.Campaign``.

    Requests are repeated while the service cannot be reached, for a minute by default; every one
    that changes something has a key, so that it happens once. It is thread-safe.

    .. versionadded:: 0.2

    See Also
    --------
    Campaign : The same on a database.

    Examples
    --------
    >>> campaign = cg.client.Campaign.create(address, "bench", ["left", "right"])
    >>> trial = campaign.ask([0.2, 0.1])
    >>> campaign.tell(trial, 0.5).state
    'told'
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._path = f"/v1/campaigns/{quote(name, safe='')}"
        self._goal = decode_goal(connection.get(self._path)["goal"])

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

        Examples
        --------
        >>> campaign = cg.client.Campaign.create(address, "rig 2", ["left", "right"])
        >>> campaign.arms
        ('left', 'right')
        """
        check_name("name", name)
        check_key(key)
        connection = Connection(url, token, patience)
        target = encode_goal(goal)
        if target is not None:
            target["reference"] = values.request_contexts(target["reference"])
        body = {
            "name": name,
            "arms": arms if isinstance(arms, int) else [*map(encode_label, read_labels(arms))],
            "goal": target,
            "lease": read_lease(lease),
            "settings": _settings_json(settings, arms),
            "key": key or uuid4().hex,
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

        Examples
        --------
        >>> campaign = cg.client.Campaign.create(address, "rig 3", ["left", "right"])
        >>> cg.client.Campaign.open(address, "rig 3").arms
        ('left', 'right')
        """
        return cls(Connection(url, token, patience), name)

    @staticmethod
    def names(url: str, *, token: str | None = None) -> tuple[str, ...]:
        """Return the names of all campaigns that the token may see.

        Parameters
        ----------
        url, token
            As for ``create``.

        Examples
        --------
        >>> campaign = cg.client.Campaign.create(address, "rig 4", ["left", "right"])
        >>> "rig 4" in cg.client.Campaign.names(address)
        True
        """
        connection = Connection(url, token, _PATIENCE)
        try:
            return tuple(connection.get("/v1/campaigns")["campaigns"])
        finally:
            connection.close()

    def __repr__(self) -> str:
        return f"Campaign({self._name!r}, {self._connection.url!r})"

    def _close(self) -> None:
        self._connection.close()

    def _arms(self) -> tuple[Label, ...]:
        return tuple(map(decode_label, self._get("arms")["arms"]))

    def _ask(self, request: dict[str, Any], arms: Any, key: str | None) -> Any:
        # Contexts or a pool, and the rest, of which services of 0.2 know no ``once``.
        given = {
            n: values.request_contexts(v) if isinstance(v, dict) else v for n, v in request.items()
        }
        return _trials(self._send("ask", key, **given, arms=self._eligible(arms)))

    def _tell(
        self, said: dict[str, Any], single: bool, trial: Any, eligible: Any, key: str | None
    ) -> Any:
        if trial is None:
            said["reward"], contexts = (
                said.pop("rewards"),
                values.request_contexts(said.pop("contexts")),
            )
        body = {name: each[0] if single else each for name, each in said.items()}
        if trial is None:
            body |= {"contexts": contexts, "eligible": self._eligible(eligible)}
        return _trials(self._send("tell", key, **body))

    def _cancel(self, trial: Any, key: str | None) -> Trial:
        return _trial(self._send(f"trials/{read_number(trial)}/cancel", key)["trial"])

    def _change(self, trial: Any, reward: float | None, why: str, key: str | None) -> Recall:
        how = "retract" if reward is None else "correct"
        found = self._send(f"trials/{read_number(trial)}/{how}", key, reward=reward, why=why)
        return Recall(found["trial"], tuple(Recalled(**each) for each in found["policies"]))

    def _find_trials(self, states: list[str] | None, after: int, most: int | None) -> list[Trial]:
        how = {} if states is None else {"state": states}
        found: list[Trial] = []
        while most is None or len(found) < most:
            size = _PAGE if most is None else min(_PAGE, most - len(found))
            page = self._get("trials", **how, after=after, most=size)
            found += map(_trial, page["trials"])
            if page["next"] is None:
                break
            after = page["next"]
        return found

    def _trial(self, number: int) -> Trial:
        return _trial(self._get(f"trials/{number}")["trial"])

    def _recommend(self, contexts: Any, arms: Any) -> Any:
        rows = values.request_contexts(values.encode_contexts(contexts))
        body = {"contexts": rows, "arms": self._eligible(arms)}
        found = self._connection.post(f"{self._path}/recommend", body)
        if "arm" in found:
            return decode_label(found["arm"])
        labels = tuple(map(decode_label, found["arms"]))
        return label_array(labels, np.arange(len(labels)))

    def _learner(self) -> Learner:
        return Learner.load(self._download("learner"))

    def _freeze(self, name: str, fallback: Any, tolerance: float | None, key: str | None) -> Policy:
        self._send("policies", key, name=name, fallback=fallback, tolerance=tolerance)
        return self.policy(name)

    def _policies(self) -> tuple[FrozenPolicy, ...]:
        found = self._get("policies")["policies"]
        return tuple(
            FrozenPolicy(**{**each, "recalled": tuple(each["recalled"])}) for each in found
        )

    def _policy(self, name: str, how: str = "cgap") -> Policy:
        return Policy.load(self._download(f"policies/{quote(name, safe='')}/{how}"))

    def _rebuild(self, name: str) -> Policy:
        return self._policy(name, "rebuilt")

    def _append(self, kind: str, request: dict[str, Any], key: str | None) -> None:
        if request.get("features") is not None:
            request["features"] = values.request_contexts(request["features"])
        self._send(_PATHS[kind], key, **request)

    def _status(self, fresh: bool) -> CampaignStatus:
        found = self._get("status", fresh=fresh)
        tuning, score = found["tuning"], found["score"]
        rest = {
            "rewards": {decode_label(each["arm"]): each["count"] for each in found["rewards"]},
            "tuning": None if tuning is None else Tuning.restored(tuning),
            "score": None if score is None else Card.restored(score),
        }
        return CampaignStatus(**{**found, **rest})

    def _eligible(self, arms: Any) -> Any:
        return eligible_json(arms, lambda: self.arms)

    def _get(self, rest: str, **parameters: Any) -> Any:
        return self._connection.get(f"{self._path}/{rest}", **parameters)

    def _send(self, rest: str, key: str | None, **body: Any) -> Any:
        body["key"] = key or uuid4().hex
        return self._connection.post(f"{self._path}/{rest}", body)

    def _download(self, rest: str) -> io.BytesIO:
        return io.BytesIO(self._connection.download(f"{self._path}/{rest}"))


def _trials(found: dict[str, Any]) -> Any:
    return _trial(found["trial"]) if "trial" in found else [*map(_trial, found["trials"])]


def _trial(value: Mapping[str, Any]) -> Trial:
    among = value["eligible"]
    eligible = None if among is None else tuple(map(decode_label, among))
    pick = values.Pick({"row": value["context"]}, decode_label(value["arm"]), eligible)
    return values.read_trial({"by": None, **value}, pick)  # services of release 0.2 do not say who


def _settings_json(settings: Mapping[str, Any], arms: Any) -> dict[str, Any]:
    found = {name: _plain(value) for name, value in settings.items()}
    if settings.get("columns") is not None:
        found["columns"] = {name: _plain(kind) for name, kind in settings["columns"].items()}
    features = settings.get("features")
    if isinstance(features, Mapping):
        features = [features[label] for label in read_labels(arms)]
    if features is not None:
        found["features"] = values.request_contexts(values.encode_contexts(features, "features"))
    return found


def _plain(value: Any) -> Any:
    return value.describe() if isinstance(value, Component) else value


def eligible_json(arms: Any, known: Callable[[], Sequence[Label]]) -> Any:
    """Return eligible arms as JSON values; ``known`` returns all arms, for masks and tuples."""
    if arms is None:
        return None
    if hasattr(arms, "to_numpy") and not hasattr(arms, "columns"):
        arms = arms.to_numpy()
    if isinstance(arms, np.ndarray) and arms.dtype == np.bool_:
        every = known()
        if arms.shape[-1] != len(every):
            raise ValueError(f"arms must have a column for each of {len(every)} arms")
        rows = values.named_arms(arms, every)
        return rows[0] if arms.ndim == 1 else rows
    if isinstance(arms, str) or not hasattr(arms, "__iter__"):
        raise TypeError(f"arms must be labels, or a boolean array, got {arms!r}")
    entries = list(arms)
    # Tuples are labels, or collections of them.
    labels = set(known()) if any(isinstance(entry, tuple) for entry in entries) else set()
    return [
        [encode_label(label) for label in entry]
        if isinstance(entry, _COLLECTIONS) and not (isinstance(entry, tuple) and entry in labels)
        else encode_label(entry)
        for entry in entries
    ]


class Connection:
    """A service, and a token for it; requests are repeated while it is away or busy."""

    def __init__(self, url: str, token: str | None, patience: float) -> None:
        url, _, fragment = url.partition("#")
        token = token or fragment.removeprefix("token=") or os.environ.get(TOKEN)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        # Tuning may take minutes; a service that died is noticed anyway.
        timeout = httpx.Timeout(600.0, connect=5.0)
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        weakref.finalize(self, self._http.close)
        self.url, self._patience = url, patience

    def get(self, path: str, **parameters: Any) -> Any:
        return self._send("GET", path, params=parameters).json()

    def download(self, path: str) -> bytes:
        return self._send("GET", path).content

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a request with a body; return the JSON of the answer. None is not sent."""
        given = {name: value for name, value in body.items() if value is not None}
        return self._send("POST", path, json=given).json()

    def close(self) -> None:
        self._http.close()

    def _send(self, method: str, path: str, **how: Any) -> httpx.Response:
        deadline, pause = time.monotonic() + self._patience, _FIRST
        while True:
            try:
                response = self._http.request(method, path, **how)
            except httpx.TransportError as error:
                if time.monotonic() + pause > deadline:
                    raise ConnectionError(f"cannot reach {self.url}: {error}") from None
            else:
                if response.status_code not in _AGAIN:
                    return _checked(response)
                text = response.headers.get("retry-after", "")
                pause = max(pause, min(float(text), 60.0) if text.isdecimal() else 0.0)
                if time.monotonic() + pause > deadline:
                    raise ConnectionError(_detail(response))
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2.0 * pause, _LONGEST)


def _checked(response: httpx.Response) -> httpx.Response:
    if response.is_success:
        return response
    detail = _detail(response)
    if response.status_code == 401 and "Authorization" not in response.request.headers:
        raise PermissionError(f"{detail}; give token=, or set {TOKEN} in the environment")
    if response.status_code in (401, 403):
        raise PermissionError(detail)
    name = _problem(response).get("error")
    if name in _RAISED:
        raise _RAISED[name](detail)
    if response.is_client_error:
        raise ValueError(detail)
    raise RuntimeError(f"the service failed: {detail}")


def _detail(response: httpx.Response) -> str:
    return str(_problem(response).get("detail", f"{response.status_code} {response.text[:200]}"))


def _problem(response: httpx.Response) -> dict[str, Any]:
    kind = response.headers.get("content-type", "")
    return dict(response.json()) if kind.startswith("application/problem+json") else {}
