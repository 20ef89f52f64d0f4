import hashlib
import os
import re
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
html_static_path = ["_static", str(Path(contextgap.__file__).parent / "base" / "look.css")]
html_css_files = ["look.css", "docs.css"]
_LOOK = {  # furo's names, and ours for the same colours in reports and on the live page
    "font-stack": "sans",
    "font-stack--monospace": "mono",
    "color-foreground-primary": "ink",
    "color-foreground-secondary": "quiet",
    "color-foreground-muted": "quiet",
    "color-foreground-border": "quiet",
    "color-background-primary": "paper",
    "color-background-secondary": "ground",
    "color-background-hover": "faint",
    "color-background-border": "rule",
    "color-brand-primary": "accent",
    "color-brand-content": "accent",
    "color-brand-visited": "accent",
    "color-link-underline": "accent",
    "color-problematic": "accent",
    "color-card-background": "paper",
    "color-card-border": "rule",
}
_VARIABLES = {name: f"var(--{ours})" for name, ours in _LOOK.items()}
html_theme_options = {"light_css_variables": _VARIABLES, "dark_css_variables": _VARIABLES}
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
nb_execution_timeout = 600  # seconds per cell; a busy machine is slow
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


def _accessible(app, pagename, templatename, context, doctree) -> None:  # noqa: ARG001  # Sphinx's
    """Give captions of the contents a level, name toggles as seen, let keys scroll."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )
    scrolled = r'<pre|<div class="(?:table-wrapper|cell_output|math-wrapper)\b[^>]*'
    body = re.sub(r"<summary [^>]*>", "<summary>", context.get("body", ""))
    context["body"] = re.sub(scrolled, r'\g<0> tabindex="0"', body)


def setup(app) -> None:
    app.connect("html-page-context", _accessible, priority=900)  # after furo's own
