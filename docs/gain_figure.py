"""Draw docs/images/gain.png: what choosing by context gains, and choosing what to try.

Usage: python docs/gain_figure.py [FOLDER]

FOLDER holds the results of ``contextgap run bench --repetitions 10``, the first part of ``make
demo``; by default out/demo/bench.
"""

import sys
from pathlib import Path

import pandas as pd
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter

LINES = {
    "best single arm": ("always the best\nsingle sensor", "#767676", "--"),
    "uniform": ("try sensors evenly", "#000000", ":"),
    "gain-or-gap": ("contextgap", "#B22222", "-"),
}


def main(folder: Path) -> None:
    records = pd.read_parquet(folder / "records.parquet")
    regret = records.groupby(["method", "checkpoint"])["average_regret"].agg(["mean", "sem"])
    figure, ax = pyplot.subplots(figsize=(7.6, 3.6), layout="constrained")
    for method, (label, colour, line) in LINES.items():
        curve = regret.loc[method]
        ax.plot(curve.index, curve["mean"], line, color=colour, linewidth=2.4)
        ax.fill_between(
            curve.index,
            curve["mean"] - curve["sem"],
            curve["mean"] + curve["sem"],
            color=colour,
            alpha=0.18,
            linewidth=0,
        )
        ax.annotate(
            f"{label}: {curve['mean'].iloc[-1]:.2g} nT",
            (curve.index[-1], curve["mean"].iloc[-1]),
            xytext=(8, 0),
            textcoords="offset points",
            color=colour,
            fontsize=11,
            va="center",
        )
    ax.set(yscale="log", xlim=(0, 1000), xlabel="trials before deployment")
    ax.set_ylabel("avoidable error, nT")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.grid(axis="y", color="#D9D9D9")
    ax.spines[["top", "right"]].set_visible(False)
    path = Path(__file__).parent / "images" / "gain.png"
    figure.savefig(path, dpi=130)
    print(f"written to {path.name}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo/bench"))
