"""What can be wrong with a request besides its values."""

from __future__ import annotations


class ConflictError(ValueError):
    """A request that contradicts what happened before, such as a key used for something else."""


class NotFoundError(ValueError):
    """A campaign, a trial or a policy that does not exist."""


class AlteredError(ValueError):
    """A row of the database is not what was written; ``contextgap database verify`` says more."""


class UnavailableError(OSError):
    """The database cannot be used now. Nothing was changed, and trying again later may help."""


class DeadlineError(TimeoutError):
    """A call took longer than it may, or nobody waits for it any more. Nothing was changed."""
