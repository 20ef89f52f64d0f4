"""Draw docs/images/watching.png, the example of guide/watching.md.

Usage: python docs/watching_figure.py
"""

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot

DOCS = Path(__file__).parent


def main() -> None:
    """Run the first block of the page, and keep what it draws."""
    page = (DOCS / "guide/watching.md").read_text(encoding="utf-8")
    exec(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0], {})
    pyplot.gcf().savefig(DOCS / "images" / "watching.png", dpi=110)


if __name__ == "__main__":
    main()
