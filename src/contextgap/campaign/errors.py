"""What can be wrong with a request besides its values."""

from __future__ import annotations


class ConflictError(ValueError):
    """A request that contradicts what happened before, such as a key used for something else."""


class NotFoundError(ValueError):
    """A campaign, a trial or a policy that does not exist."""
