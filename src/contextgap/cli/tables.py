"""Reads contexts from files, with columns of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contextgap.base.columns import Category, Date
from contextgap.base.columns.coding import Coding
from contextgap.cli.policies import read_contexts
from contextgap.export.c.levels import level_text
from contextgap.policy import Policy
from contextgap.problems.extras import study_import
from contextgap.problems.sheet import read_sheet, to_number


def read_table(policy: Policy, path: Path) -> Any:
    """Return the contexts in a file as the policy takes them: an array, or a DataFrame of cells."""
    table = policy._schema.table
    if table is None:
        return read_contexts(policy, path)
    sheet = read_sheet(path)
    cells = {
        coding.name: [_cell(coding, cell) for cell in sheet.cells_of(coding.name)]
        for coding in table.codings
    }
    frame = study_import("pandas").DataFrame(cells, dtype=object)
    try:
        policy._read(frame)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from None
    return frame


def _cell(coding: Coding, cell: Any) -> Any:
    """Return a cell of a file, where all may be text, as the column has it."""
    if not isinstance(cell, str):
        return cell
    if not cell.strip():
        return None
    if isinstance(coding.kind, Category):
        by_text = {level_text(level): level for level in reversed(coding.levels)}
        return by_text.get(cell, by_text.get(cell.lower(), cell))
    number = to_number(cell)
    return cell if isinstance(coding.kind, Date) or number is None else number
