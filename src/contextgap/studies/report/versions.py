"""The versions of everything a result was computed with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from contextgap.base.names import study_import

_PACKAGES = ("contextgap", "numpy", "scipy", "pandas", "matplotlib")


def versions() -> dict[str, str]:
    """Return the versions of Python, of the packages and of BLAS, and the kind of machine."""
    found = {"python": platform.python_version()}
    found |= {package: _version(package) for package in _PACKAGES}
    telling = ("internal_api", "version", "architecture")
    libraries = {
        " ".join(str(pool[key]) for key in telling if key in pool)
        for pool in study_import("threadpoolctl").threadpool_info()
        if pool.get("user_api") == "blas"
    }
    found["BLAS"] = "; ".join(sorted(libraries)) or "unknown"
    found["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
