"""Reads contexts from files, with columns of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contextgap.policy import Policy
from contextgap.problems.sheet import Sheet, read_sheet


def read_contexts(policy: Policy, path: Path) -> Any:
    """Return the contexts in a file, checked as the policy's own."""
    return contexts_in(read_sheet(path), policy)


def contexts_in(sheet: Sheet, policy: Policy) -> Any:
    """Return a table's contexts as a policy takes them; errors name the file."""
    columns, known = list(policy.columns or sheet.columns), policy._schema.table
    rows = sheet.numbers(columns) if known is None else sheet.table(columns, known.kinds)
    if not len(rows):
        raise ValueError(f"{sheet.path} holds no contexts")
    try:
        policy._read(rows)
    except (TypeError, ValueError) as error:
        raise ValueError(sheet.located(error)) from None
    return rows
