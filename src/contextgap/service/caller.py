"""Who sends a request."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Scope

from contextgap.service.tokens import Token


@dataclass
class Caller:
    """Who sends a request, and how.

    Parameters
    ----------
    method
        Such as GET.
    address
        Where the request came from.
    headers
        By names in lower case.
    token
        The token, if it has a good one.
    """

    method: str
    address: str
    headers: dict[str, str]
    token: Token | None = None

    @classmethod
    def of(cls, scope: Scope) -> Caller:
        """Return who sends a request."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        return cls(scope["method"], (scope.get("client") or ("unknown",))[0], headers)

    @property
    def name(self) -> str:
        """What tells callers apart when their requests are counted."""
        return self.address if self.token is None else f"token {self.token.name}"
