"""Reads contexts from files, with columns of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from contextgap.cli.terminal import noting_warnings
from contextgap.policy import Policy
from contextgap.tables.columns import Columns, Kind
from contextgap.tables.contexts import Encoded
from contextgap.tables.files import Sheet, read_sheet
from contextgap.tables.trials import check_columns


def read_contexts(policy: Policy, path: Path) -> Any:
    """Return the contexts in a file, checked as the policy's own."""
    sheet = read_sheet(path)
    encoded_in(sheet, policy)
    return _table(sheet, policy)


def encoded_in(sheet: Sheet, policy: Policy) -> Encoded:
    """Return a table's contexts as a policy's kernel takes them; errors name the file."""
    table = _table(sheet, policy)
    try:
        return Encoded(policy.state.read(table)[0], policy.state.schema)
    except (TypeError, ValueError) as error:
        raise ValueError(sheet.located(error)) from None


def read_features(path: Path, arm: str) -> dict[str, dict[str, Any]]:
    """Return the features of arms in a file by the texts in its column ``arm``."""
    sheet = read_sheet(path)
    names = [name for name in sheet.columns if name != arm]
    arms = [str(cell).strip() for cell in sheet.cells_of(arm)]
    if not names:
        raise ValueError(f"{path}: no column is left as a feature beside {arm!r}")
    if len(set(arms)) < len(arms):
        twice = next(each for each in arms if arms.count(each) > 1)
        raise ValueError(f"{path}: the arm {twice!r} is there twice; it has one row of features")
    return dict(zip(arms, sheet.table(names), strict=True))


def described_table(
    sheet: Sheet,
    names: Sequence[str],
    kinds: Mapping[str, Kind],
    missing: Sequence[str] = (),
) -> tuple[Any, Columns | None]:
    """Return columns of a table, and what they hold; None unless the user said something of it."""
    check_columns([*kinds, *missing], names)
    table = sheet.table(names, kinds)
    if not kinds and not missing:
        return table, None
    return table, Columns.from_table(table, **kinds).with_missing(missing)


def context_columns(
    sheet: Sheet, exclude: Sequence[str] | None, columns: Sequence[str] | None = None
) -> list[str]:
    """Return ``columns``, or all, but those excluded; a name that is mistyped is an error."""
    for name in exclude or ():
        sheet.cells_of(name)
    with noting_warnings():
        names = [each for each in columns or sheet.others(()) if each not in (exclude or ())]
    if not names:
        raise ValueError(f"{sheet.path}: no column is left as context")
    return names


def _table(sheet: Sheet, policy: Policy) -> Any:
    known = policy.state.schema.table
    if policy.columns is None:
        raise ValueError(
            f"{sheet.path}: columns have names, {', '.join(sheet.columns)}, but the policy was "
            "learnt from numbers without names; in Python, give it theirs in the order learnt and "
            "save it: policy.with_columns([...]).save(...)"
        )
    if known is not None:
        return sheet.table(list(policy.columns), known.kinds)
    return sheet.numbers(list(policy.columns))
