"""Typed columns: tables of contexts as they are, turned into numbers that kernels understand."""

from contextgap.base.columns.columns import Columns
from contextgap.base.columns.kinds import Category, Cyclic, Date, Kind, Number
from contextgap.base.columns.schema import Layout, Refilling, Renaming, TableSchema

__all__ = [
    "Category",
    "Columns",
    "Cyclic",
    "Date",
    "Kind",
    "Layout",
    "Number",
    "Refilling",
    "Renaming",
    "TableSchema",
]
