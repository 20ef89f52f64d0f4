"""Campaigns over HTTP, with the methods of ``cg.Campaign``."""

try:
    from contextgap.team.client.campaign import Campaign
except ImportError as missing:
    raise ImportError(
        f"the client needs {missing.name}; pip install 'contextgap[client]' brings it"
    ) from None

__all__ = ["Campaign"]
