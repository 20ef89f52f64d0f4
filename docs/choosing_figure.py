"""Draw docs/images/choosing.png: which method, which model, which export.

Usage: python docs/choosing_figure.py
"""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

BLUE, GREEN, GREY = "#0072B2", "#009E73", "#7f7f7f"
# Columns of a question and its answers, (when, what); the first answer is the usual one.
DECISIONS = [
    (
        "Which method?",
        [
            ("usually", 'leave it: "auto"'),
            ("a guarantee, or hundreds of arms", '"contextual-gap"'),
            ("contexts are yours to choose", "ask(pool=...)"),
            ("reward is earned while learning", "another library"),
        ],
    ),
    (
        "Which model?",
        [
            ("usually", "leave it: all is learnt"),
            ("a kernel is known beforehand", "kernel=..., ridge=..."),
            ("arms are doses, settings, places", "features={...}"),
            ("a million rows", "the same; or points=2048"),
        ],
    ),
    (
        "Which export?",
        [
            ("Python decides", "policy.save"),
            ("another language decides", "policy.to_onnx"),
            ("a microcontroller decides", "compress, then to_c"),
            ("too little is known in places", "freeze(fallback=...) first"),
        ],
    ),
]


def main() -> None:
    figure = Figure(figsize=(9.6, 3.4))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(0, 3)
    ax.set_ylim(0, 5)
    ax.axis("off")
    for place, (question, answers) in enumerate(DECISIONS):
        left = place + 0.04
        ax.text(left + 0.46, 4.62, question, ha="center", va="center", fontsize=12, weight="bold")
        for row, (when, what) in enumerate(answers):
            bottom, usual = 3.4 - 1.08 * row, row == 0
            colour = BLUE if usual else GREY
            box = FancyBboxPatch(
                (left, bottom),
                0.92,
                0.86,
                boxstyle="round,pad=0,rounding_size=0.04",
                mutation_aspect=1.6,
                facecolor=f"{colour}14",
                edgecolor=colour,
            )
            ax.add_patch(box)
            ax.text(left + 0.04, bottom + 0.6, when, va="center", fontsize=8.5, color="#333333")
            ax.text(
                left + 0.04,
                bottom + 0.24,
                what,
                va="center",
                fontsize=10,
                color=colour if usual else "black",
                family="monospace",
            )
    path = Path(__file__).parent / "images" / "choosing.png"
    figure.savefig(path, dpi=110)
    print(f"written to {path.name}")


if __name__ == "__main__":
    main()
