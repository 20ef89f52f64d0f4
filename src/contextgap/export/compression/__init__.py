"""Policies with fewer points, for small memories."""

from contextgap.export.c.layout import rom_bytes
from contextgap.export.compression.compressing import CompressionReport, CurveRow, compress

__all__ = ["CompressionReport", "CurveRow", "compress", "rom_bytes"]
