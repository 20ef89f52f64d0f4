import contextgap

project = "contextgap"
author = "The contextgap authors"
copyright = "2026, the contextgap authors"
release = version = contextgap.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
]
html_theme = "furo"
html_title = "contextgap"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what each argument is
suppress_warnings = ["myst.header"]
