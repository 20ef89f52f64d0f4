"""How tutorials print and draw; imported by a hidden cell at their top."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib
from cycler import cycler
from IPython.core.magic import register_cell_magic
from matplotlib_inline.backend_inline import set_matplotlib_formats

from contextgap.insight.plot import ARMS

LOGS = Path(__file__).parents[2] / "tests" / "logs"
"""Logs that other tools wrote."""
_PROGRESS = re.compile(r"^.*: .*about \d+ s(?: left)?\n", re.MULTILINE)


def _say(message, category, filename, lineno, file=None, line=None):  # noqa: ARG001  # its interface
    print(f"{category.__name__}: {message}")


@register_cell_magic
def bash(line, cell):  # noqa: ARG001  # its interface
    """Run commands and print their output at the end; raise if one of them fails.

    IPython's own prints pieces, and lines may break wherever a piece ended. Lines about progress,
    which appear on slow machines only, are left out.
    """
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", cell], capture_output=True, text=True, encoding="utf-8"
    )
    print(done.stdout, end="")
    print(_PROGRESS.sub("", done.stderr), end="", file=sys.stderr)
    done.check_returncode()


sys.stdout.flush_interval = 3600  # seconds: a cell's output is shown when the cell has ended
for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):  # notebooks pretend to be terminals to commands
    os.environ.pop(name, None)
warnings.showwarning = _say  # without the file and line, which differ from build to build
set_matplotlib_formats("png", pil_kwargs={"optimize": True})
matplotlib.rcParams |= {
    "figure.figsize": (6.5, 3.6),
    "figure.dpi": 120,
    "font.size": 9,
    "axes.prop_cycle": cycler(color=ARMS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
