"""``contextgap_selftest.c``: Python's answers, to be compared with on the target."""

from __future__ import annotations

import numpy as np

from contextgap.export.c.literals import Real, array, integers
from contextgap.export.c.precision import Precision
from contextgap.export.c.shape import Shape
from contextgap.export.c.source import EXPORT_ID
from contextgap.export.c.template import fill
from contextgap.export.reference import Reference


def self_test(
    shape: Shape, expected: Reference, precision: Precision, real: Real, version: str
) -> str:
    """Return the text of ``contextgap_selftest.c``, but for the export's id.

    Parameters
    ----------
    shape
        Form and sizes of the code.
    expected
        Python's answers.
    precision
        How far the answers in C may be from them.
    real
        The type to compute in.
    version
        Of this library.
    """
    near = (expected.margin <= precision.tolerance).astype(int)
    data = [
        array(real, "contexts", expected.contexts, "one after the other"),
        array(real, "means", expected.mean, "of every arm"),
        integers("arms", "int", expected.arm.tolist(), "recommended"),
        integers("near_tie", "unsigned char", near.tolist(), "whether rounding may decide"),
    ]
    if shape.form.has_widths:
        data.append(array(real, "widths", 2 * expected.half_width, "full ones, of every arm"))
        data.append(array(real, "gaps", expected.gap, "of every arm"))
        data.append(array(real, "certificates", expected.certificate, "of the recommended arm"))
    return fill(
        "selftest.c",
        version=version,
        export_id=EXPORT_ID,
        count=len(np.atleast_1d(expected.arm)),
        real_max="FLT_MAX" if real.float32 else "DBL_MAX",
        tolerance=real.literal(precision.tolerance, "the tolerance"),
        data="\n".join(data),
    )
