"""Columns of a table as a graph: what kernels see of rows with one number per column."""

from __future__ import annotations

import numpy as np

from contextgap.export.onnx.builder import GraphBuilder
from contextgap.export.typed_rows import How, SpreadNumber, spread_numbers
from contextgap.tables.schema import TableSchema


def spread_rows(graph: GraphBuilder, rows: str, table: TableSchema) -> str:
    """Return what kernels see of ``rows``, shape (columns, batch), as a table (numbers, batch).

    What has no answer is NaN or infinite there.
    """
    numbers = spread_numbers(table)
    groups = [(how, [each for each in numbers if each.how is how]) for how in How]
    parts = [_part(graph, rows, how, own) for how, own in groups if own]
    # Numbers come out by what becomes of them; kernels have them by column.
    order = sorted(range(len(numbers)), key=lambda place: numbers[place].how.value)
    places = np.argsort(order)
    stacked = graph.stack(parts)
    if (places == np.arange(len(places))).all():
        return stacked
    return graph.node("Gather", stacked, graph.whole(places), axis=0)


def _part(graph: GraphBuilder, rows: str, how: How, numbers: list[SpreadNumber]) -> str:
    """Return the numbers that are made alike, shape (numbers, batch)."""
    sources = graph.whole([each.source for each in numbers])
    values = graph.node("Gather", rows, sources, axis=0)
    gap = graph.node("IsNaN", values)
    if how is How.IS_MISSING:
        return graph.cast(gap, graph.dtype)
    by = graph.real([[each.by] for each in numbers])
    found = values
    if how in (How.COSINE, How.SINE):
        # The remainder is exact, while float32 keeps little of a date in turns.
        turns = graph.node("Div", graph.node("Mod", values, by, fmod=1), by)
        angle = graph.node("Mul", turns, graph.real(2 * np.pi))
        found = graph.node("Cos" if how is How.COSINE else "Sin", angle)
    elif how is How.CODE:
        found = _known(graph, values, by, numbers)
    missing = graph.real([[each.missing] for each in numbers])
    return graph.node("Where", gap, missing, found)


def _known(graph: GraphBuilder, codes: str, by: str, numbers: list[SpreadNumber]) -> str:
    """Return codes, with those of no level made one; infinities stay."""
    whole = graph.node("Equal", codes, graph.node("Floor", codes))
    negative = graph.node("Less", codes, graph.real(0.0))
    is_level = graph.node("And", whole, graph.node("Less", codes, by))
    is_level = graph.node("And", is_level, graph.node("Not", negative))
    kept = graph.node("Or", is_level, graph.node("IsInf", codes))
    unknown = graph.real([[each.unknown] for each in numbers])
    return graph.node("Where", kept, codes, unknown)
