"""Policies with fewer points, for where memory is short."""

from contextgap.compression.compressing import compress
from contextgap.compression.report import CompressionReport, CurveRow
from contextgap.compression.size import rom_bytes

__all__ = ["CompressionReport", "CurveRow", "compress", "rom_bytes"]
