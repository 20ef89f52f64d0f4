"""How tutorials print and draw; imported by a hidden cell at their top."""

import os
import warnings

import matplotlib
from matplotlib_inline.backend_inline import set_matplotlib_formats


def _say(message, category, filename, lineno, file=None, line=None):  # noqa: ARG001  # its interface
    print(f"{category.__name__}: {message}")


for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):  # notebooks pretend to be terminals to commands
    os.environ.pop(name, None)
warnings.showwarning = _say  # without the file and line, which differ from build to build
set_matplotlib_formats("png", pil_kwargs={"optimize": True})
matplotlib.rcParams |= {
    "figure.figsize": (6.5, 3.6),
    "figure.dpi": 120,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
