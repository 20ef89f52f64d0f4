import hashlib
import os
import sys
from pathlib import Path

import contextgap

HERE = Path(__file__).parent

project = "contextgap"
author = "The contextgap authors"
copyright = "2026, the contextgap authors"
release = version = contextgap.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_design",
]
html_theme = "furo"
html_title = "contextgap"
html_static_path = ["_static"]
html_css_files = ["tutorials.css"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what each argument is
suppress_warnings = ["myst.header"]


def _digest() -> str:
    """Return a hash of everything that the output of a tutorial depends on but its own text."""
    package = Path(contextgap.__file__).parent
    files = [*sorted(package.rglob("*.py")), HERE / "tutorials" / "tutorial_style.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


# Tutorials run when the pages are built, each in a folder of its own. What they printed is kept
# until their text or the library changes. An error, or anything written to stderr, fails the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "executed" / _digest())
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 120
nb_output_stderr = "warn"
nb_merge_streams = True

# Kernels inherit this: our own style, our commands, plain text of a page's width, one BLAS thread.
os.environ.pop("MPLBACKEND", None)
os.environ |= {
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    "PYTHONPATH": os.pathsep.join(
        [
            str(HERE / "tutorials"),
            str(Path(contextgap.__file__).parents[1]),  # the library that the pages are about
            *filter(None, [os.environ.get("PYTHONPATH")]),
        ]
    ),
    "COLUMNS": "80",
    "OPENBLAS_NUM_THREADS": "1",
}
