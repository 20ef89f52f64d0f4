"""Reports as self-contained HTML pages, with their figures beside them."""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from io import StringIO
from numbers import Integral, Real
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import matplotlib
import numpy as np

from contextgap.base.components import study_import
from contextgap.studies.report.figures import check_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame, Series


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("contextgap", "numpy", "scipy", "pandas", "matplotlib"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    telling = ("internal_api", "version", "architecture")
    libraries = {
        " ".join(str(pool[key]) for key in telling if key in pool)
        for pool in study_import("threadpoolctl").threadpool_info()
        if pool.get("user_api") == "blas"
    }
    found["BLAS"] = "; ".join(sorted(libraries)) or "unknown"
    found["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return found


_NOTHING = "–"


def table_html(table: DataFrame, caption: str) -> str:
    """Return a table, without its index, whose headings are buttons that sort it."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    if not len(table):
        return f'<table>{title}<tbody><tr><td class="empty">no rows</td></tr></tbody></table>'
    numeric = [_is_numeric(table.iloc[:, place]) for place in range(table.shape[1])]
    kinds = [' class="number"' if each else "" for each in numeric]
    head = "".join(
        f'<th scope="col" aria-sort="none"{kind}><button>{escape(str(name))}</button></th>'
        for name, kind in zip(table.columns, kinds, strict=True)
    )
    rows = "\n".join(
        f"<tr>{''.join(map(_cell, row, numeric))}</tr>"
        for row in table.itertuples(index=False, name=None)
    )
    return (
        f'<div class="wide"><table class="sortable">{title}\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def three_digits(value: Any) -> str:
    """Return a value as text, real numbers with three significant digits.

    Examples
    --------
    >>> [three_digits(value) for value in (0.0021549, 1.0, 1950, 12345.6, 3.14159e-7, True)]
    ['0.00215', '1.00', '1950', '12300', '3.14e-07', 'yes']
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral) or not isinstance(value, Real):
        return _NOTHING if _is_missing(value) else str(value)
    number = float(value)
    if not np.isfinite(number):
        return _NOTHING if np.isnan(number) else ("∞" if number > 0 else "−∞")
    if number != 0 and not 1e-5 <= abs(number) < 1e6:
        return f"{number:.2e}"
    rounded = float(f"{number:.2e}")  # first, as 0.9996 has two decimals when rounded, not three
    power = 0 if rounded == 0 else math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(0, 2 - power)}f}"


def _is_missing(value: Any) -> bool:
    # pandas' NA and NaT, and None, are the values that do not equal themselves or say so.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _is_numeric(column: Series[Any]) -> bool:
    values = [value for value in column if not _is_missing(value)]
    return bool(values) and all(
        isinstance(value, Real) and not isinstance(value, bool) for value in values
    )


def _cell(value: Any, numeric: bool) -> str:
    text = escape(three_digits(value))
    if not numeric:
        return f"<td>{text}</td>"
    # The exact value, so that rows that look the same sort correctly.
    known = not _is_missing(value) and not np.isnan(float(value))
    exact = f' data-value="{float(value)!r}"' if known else ""
    return f'<td class="number"{exact}>{text}</td>'


_RESOLUTION = 200
# What colours that have a role are called in the page's style.
_ROLES = {
    "#000000": "currentColor",
    "#222222": "currentColor",
    "#ffffff": "var(--paper)",
    "#d9d9d9": "var(--rule)",
}
# Neither the day nor links to vocabularies.
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def save(figure: Figure, folder: str | os.PathLike[str], name: str) -> tuple[Path, Path]:
    """Write a figure as SVG and as PNG.

    Parameters
    ----------
    figure
        What to write.
    folder
        Where; made if it does not exist.
    name
        The files' name without its ending.

    Returns
    -------
    paths
        The SVG and the PNG.
    """
    if not name or Path(name).name != name:
        raise ValueError(f"name must be a file name without folders, got {name!r}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    paths = place / f"{name}.svg", place / f"{name}.png"
    paths[0].write_text(svg_text(figure), encoding="utf-8", newline="\n")
    figure.savefig(paths[1], dpi=_RESOLUTION, metadata={"Software": None})
    return paths


def svg_text(figure: Figure) -> str:
    """Return a figure as an SVG document.

    Letters are outlines: they look the same everywhere, and labels that were placed by their
    measured size stay where they are on machines without the font.
    """
    text = StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "contextgap"}):
        figure.savefig(text, format="svg", metadata=_NO_METADATA)
    return text.getvalue()


def inline_svg(figure: Figure | Path, prefix: str, label: str) -> str:
    """Return a figure as an element for a page; the prefix keeps identifiers of several unique."""
    text = figure.read_text(encoding="utf-8") if isinstance(figure, Path) else svg_text(figure)

    def themed(found: re.Match[str]) -> str:
        """A colour that the page's style may replace, for dark pages."""
        return _ROLES.get(found.group(), f"var(--c-{found.group()[1:]}, {found.group()})")

    text = re.sub("(?<=: )#[0-9a-f]{6}", themed, text[text.index("<svg") :])
    text = re.sub(r'(\sid="|href="#|url\(#)', rf"\g<1>{prefix}", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).rstrip()


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a report.

    Parameters
    ----------
    title
        Its heading.
    text
        Plain text; an empty line begins a new paragraph.
    figures
        Pairs of a caption and a figure, or the SVG file of one that was saved.
    tables
        Pairs of a caption and a table.
    """

    title: str
    text: str = ""
    figures: Sequence[tuple[str, Figure | Path]] = ()
    tables: Sequence[tuple[str, DataFrame]] = ()


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a report comes from.

    Parameters
    ----------
    command
        What to type to make it again.
    date
        When it was made.
    files
        Files beside the page that it links to.
    seconds
        Where the time went: seconds by phase, in order.
    """

    command: str
    date: str
    files: Sequence[str] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Report:
    """What a page shows.

    Parameters
    ----------
    title
        The page's heading.
    summary
        Plain text; an empty line begins a new paragraph.
    sections
        In order; settings, timings and versions follow by themselves.
    settings
        What was asked for, by name.
    seeds
        Of the repetitions.
    timings
        ``Results.timings`` of ``experiments.conduct``: seconds per run.
    origin
        How, when and with what the report was made.
    """

    title: str
    summary: str
    sections: Sequence[Section] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] = ()
    timings: DataFrame | None = None
    origin: Origin | None = None


def write_report(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write a report as one HTML file.

    Parameters
    ----------
    report
        What to show.
    path
        The file; folders that do not exist are made.

    Returns
    -------
    path
        Where it was written.
    """
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(_page(report), encoding="utf-8", newline="\n")
    return place


def _page(report: Report) -> str:
    parts = [
        (section.title, _section(section, place)) for place, section in enumerate(report.sections)
    ]
    parts += _appendix(report)
    origin, made = "", report.origin
    if made is not None:
        origin = (
            f'<p class="origin">Made {escape(made.date)} by <code>{escape(made.command)}</code></p>'
        )
        if made.files:
            links = (f'<a href="{quote(each)}">{escape(each)}</a>' for each in sorted(made.files))
            origin += f'\n<p class="origin">Beside this page: {", ".join(links)}</p>'
    # Its security policy makes the browser refuse to load anything: the page is self-contained.
    return Template(resource("page.html")).substitute(
        title=escape(report.title),
        summary=_paragraphs(report.summary),
        origin=origin,
        look=resource("look.css", "contextgap.base"),
        contents="\n".join(
            f'<li><a href="#part-{place}">{escape(title)}</a></li>'
            for place, (title, _) in enumerate(parts, 1)
        ),
        sections="\n".join(
            f'<section id="part-{place}">\n<h2>{escape(title)}</h2>\n{body}\n</section>'
            for place, (title, body) in enumerate(parts, 1)
        ),
    )


def resource(name: str, package: str = "contextgap.studies.report") -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _section(section: Section, place: int) -> str:
    figures = [
        f"<figure>\n{inline_svg(figure, f'fig-{place}-{number}-', escape(caption))}\n"
        f"<figcaption>{escape(caption)}</figcaption>\n</figure>"
        for number, (caption, figure) in enumerate(section.figures)
    ]
    tables = [table_html(table, caption) for caption, table in section.tables]
    return "\n".join([_paragraphs(section.text), *figures, *tables])


def _appendix(report: Report) -> list[tuple[str, str]]:
    settings = dict(report.settings)
    if len(report.seeds):
        settings["seeds"] = _runs(report.seeds)
    found = [("Settings", _pairs(settings))] if settings else []
    spent = report.origin.seconds if report.origin is not None else {}
    times = [_phases(spent)] if spent else []
    if report.timings is not None:
        times.append(_timings(report.timings))
    if times:
        found.append(("Where the time went", "\n".join(times)))
    return [*found, ("Versions", _pairs(versions()))]


def _paragraphs(text: str) -> str:
    pieces = [piece.strip() for piece in re.split(r"\n\s*\n", text)]
    return "\n".join(f"<p>{escape(piece)}</p>" for piece in pieces if piece)


def _pairs(values: Mapping[str, Any]) -> str:
    return _by_name({name: f"<td>{escape(_value(value))}</td>" for name, value in values.items()})


def _by_name(cells: Mapping[str, str], caption: str = "") -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(str(name))}</th>{own}</tr>' for name, own in cells.items()
    )
    return f'<div class="wide"><table>{caption}<tbody>\n{rows}\n</tbody></table></div>'


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_value(item)}" for name, item in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return ", ".join(map(_value, value))
    return three_digits(value)


def _runs(seeds: Sequence[int]) -> str:
    seeds = [int(seed) for seed in seeds]
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _phases(seconds: Mapping[str, float]) -> str:
    whole = sum(seconds.values())
    cells = {
        phase: f'<td class="number">{three_digits(spent)}</td>'
        f'<td class="number">{100 * spent / max(whole, 1e-9):.0f} %</td>'
        for phase, spent in {**seconds, "in all": whole}.items()
    }
    return _by_name(cells, "<caption>Seconds on the clock, by phase.</caption>")


def _timings(timings: DataFrame) -> str:
    check_columns("timings", timings, ("method", "seconds"))
    by = [name for name in ("study", "method", "scale") if name in timings.columns]
    found = timings.groupby(by, sort=False)["seconds"].agg(["count", "mean", "max", "sum"])
    names = {"count": "runs", "mean": "mean s", "max": "longest s", "sum": "total s"}
    total = three_digits(float(timings["seconds"].sum()))
    return table_html(
        found.reset_index().rename(columns=names),
        f"Seconds per exploration, each on one core; {total} s in all.",
    )
