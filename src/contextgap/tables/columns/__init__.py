"""Typed columns: tables of contexts as they are, turned into numbers that kernels understand."""

from contextgap.tables.columns.columns import Columns
from contextgap.tables.columns.kinds import Category, Cyclic, Date, Kind, Number
from contextgap.tables.columns.schema import Layout, Refilling, Renaming, TableSchema

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
