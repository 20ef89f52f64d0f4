"""Requests that are sent until they are answered, and answers that become exceptions."""

from __future__ import annotations

import os
import random
import time
import weakref
from collections.abc import Mapping
from typing import Any

import httpx

from contextgap.team.campaign.values import ConflictError, NotFoundError

TOKEN = "CONTEXTGAP_TOKEN"
"""The environment variable that may hold a token."""

_AGAIN = (429, 502, 503, 504)  # later there may be another answer
_FIRST, _LONGEST = 0.05, 5.0  # seconds between two tries
_RAISED: dict[str, type[Exception]] = {
    "ConflictError": ConflictError,
    "NotFoundError": NotFoundError,
    "TypeError": TypeError,
    "ValueError": ValueError,
}


class Connection:
    """A service, and a token for it.

    Requests are repeated while the service cannot be reached or is busy: those that change
    something carry a key, so that they happen once however often they are sent.

    Parameters
    ----------
    url
        Where the service is, such as ``http://127.0.0.1:8000``, or with a token as ``contextgap
        serve`` prints it: ``http://127.0.0.1:8000/#token=...``.
    token
        The secret that ``contextgap serve token create`` showed.
    patience
        Seconds after which a request is given up.
    """

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
        """Return the JSON of what is there."""
        return self._send("GET", path, params=parameters).json()

    def download(self, path: str) -> bytes:
        """Return the bytes of what is there."""
        return self._send("GET", path).content

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a request with a body; return the JSON of the answer. None is not sent."""
        given = {name: value for name, value in body.items() if value is not None}
        return self._send("POST", path, json=given).json()

    def close(self) -> None:
        """Close all connections."""
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
                pause = max(pause, _retry_after(response))
                if time.monotonic() + pause > deadline:
                    raise ConnectionError(_detail(response))
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2.0 * pause, _LONGEST)


def _checked(response: httpx.Response) -> httpx.Response:
    """Return an answer, or raise what it says is wrong."""
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


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("retry-after", "")
    return min(float(text), 60.0) if text.isdecimal() else 0.0
