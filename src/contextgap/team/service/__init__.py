"""Campaigns over HTTP; ``docs/service.md`` says how to run it and what is promised."""

try:
    from contextgap.team.service.access import Settings
    from contextgap.team.service.app import create_app
except ImportError as missing:
    raise ImportError(
        f"the service needs {missing.name}; pip install 'contextgap[serve]' brings it"
    ) from None

__all__ = ["Settings", "create_app"]
