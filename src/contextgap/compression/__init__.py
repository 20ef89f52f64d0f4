"""Policies with fewer points, for where memory is short."""

from contextgap.compression.compressing import CompressionReport, CurveRow, compress
from contextgap.export.c.layout import rom_bytes

__all__ = ["CompressionReport", "CurveRow", "compress", "rom_bytes"]
