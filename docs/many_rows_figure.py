"""Draw docs/images/many_rows.png: how a long log becomes a policy.

Usage: python docs/many_rows_figure.py
"""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

BLUE, GREY = "#0072B2", "#7f7f7f"
# What a box says, what stands below it, and whether the work is spread over workers.
STEPS = [
    ("files", "any number of rows", False),
    ("first pass", "columns, arms,\na sample of rows", True),
    ("tuning", "hyperparameters,\n512 inducing points", False),
    ("second pass", "sums over\nall rows", True),
    ("policy", "score card,\nno rows", False),
]


def main() -> None:
    """Draw the boxes from left to right."""
    figure = Figure(figsize=(8.6, 1.7))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(0, len(STEPS))
    ax.set_ylim(0, 1)
    ax.axis("off")
    for place, (name, detail, spread) in enumerate(STEPS):
        colour = BLUE if spread else GREY
        for back in (2, 1, 0) if spread else (0,):  # a stack: many workers, one block each
            box = FancyBboxPatch(
                (place + 0.08 + 0.025 * back, 0.16 + 0.06 * back),
                0.76,
                0.6,
                boxstyle="round,pad=0,rounding_size=0.05",
                mutation_aspect=0.6,
                facecolor="#eaf3f8" if spread else "#f3f3f3",
                edgecolor=colour,
            )
            ax.add_patch(box)
        text = {"ha": "center", "va": "center"}
        ax.text(place + 0.46, 0.6, name, fontsize=11, color=colour, weight="bold", **text)
        ax.text(place + 0.46, 0.35, detail, fontsize=8.5, color="#333333", **text)
        if place:
            arrow = {"arrowstyle": "->", "color": "#333333"}
            start = place - 0.1 if STEPS[place - 1][2] else place - 0.15
            ax.annotate("", (place + 0.07, 0.46), (start, 0.46), arrowprops=arrow)
    figure.savefig(Path(__file__).parent / "images" / "many_rows.png", dpi=110)


if __name__ == "__main__":
    main()
