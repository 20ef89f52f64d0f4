from __future__ import annotations

import subprocess
import sys

import pytest

from contextgap.base.components import study_import


def test_a_missing_package_names_the_extra():
    with pytest.raises(ImportError, match=r"needs no_such_package.*contextgap\[study\]"):
        study_import("no_such_package.part")


def test_nothing_heavy_is_imported_before_it_is_needed():
    heavy = ("pandas", "sklearn", "matplotlib", "pyarrow", "polars")
    code = (
        f"import sys, contextgap.problems; print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
