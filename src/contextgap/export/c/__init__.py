"""A frozen policy as C99: no allocation, no dependency but ``math.h``, all data constant."""

from contextgap.export.c.files import CExport, write_c

__all__ = ["CExport", "write_c"]
