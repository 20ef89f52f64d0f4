"""Campaigns over HTTP; ``docs/service.md`` says how to run it and what is promised."""

from contextgap.service.app import create_app
from contextgap.service.settings import Settings

__all__ = ["Settings", "create_app"]
