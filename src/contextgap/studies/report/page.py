"""Reports: self-contained HTML pages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from contextgap.studies.report.files import inline_svg
from contextgap.studies.report.summary import check_columns
from contextgap.studies.report.tables import table_html, three_digits
from contextgap.studies.report.versions import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# The policy makes the browser refuse what a self-contained page must not do: load anything.
_PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>$title</title>
<style>
$css</style>
</head>
<body>
<header>
<h1>$title</h1>
$summary
$origin
</header>
<nav aria-label="Contents">
<ol>
$contents
</ol>
</nav>
<main>
$sections
</main>
<script>
$script</script>
</body>
</html>
""")


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
    return _PAGE.substitute(
        title=escape(report.title),
        summary=_paragraphs(report.summary),
        origin="" if report.origin is None else _origin(report.origin),
        css=_resource("page.css"),
        script=_resource("page.js"),
        contents="\n".join(
            f'<li><a href="#part-{place}">{escape(title)}</a></li>'
            for place, (title, _) in enumerate(parts, 1)
        ),
        sections="\n".join(
            f'<section id="part-{place}">\n<h2>{escape(title)}</h2>\n{body}\n</section>'
            for place, (title, body) in enumerate(parts, 1)
        ),
    )


def _origin(origin: Origin) -> str:
    links = ", ".join(
        f'<a href="{quote(name)}">{escape(name)}</a>' for name in sorted(origin.files)
    )
    return (
        f'<p class="origin">Made {escape(origin.date)} by '
        f"<code>{escape(origin.command)}</code></p>"
        + (f'\n<p class="origin">Beside this page: {links}</p>' if links else "")
    )


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


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
    rows = "\n".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td>{escape(_value(value))}</td></tr>'
        for name, value in values.items()
    )
    return f'<div class="wide"><table><tbody>\n{rows}\n</tbody></table></div>'


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_value(item)}" for name, item in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return ", ".join(map(_value, value))
    return three_digits(value)


def _runs(seeds: Sequence[int]) -> str:
    """Return seeds as text, consecutive ones as a range."""
    seeds = [int(seed) for seed in seeds]
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _phases(seconds: Mapping[str, float]) -> str:
    whole = sum(seconds.values())
    rows = "\n".join(
        f'<tr><th scope="row">{escape(phase)}</th><td class="number">{three_digits(spent)}</td>'
        f'<td class="number">{100 * spent / max(whole, 1e-9):.0f} %</td></tr>'
        for phase, spent in {**seconds, "in all": whole}.items()
    )
    caption = "<caption>Seconds on the clock, by phase.</caption>"
    return f'<div class="wide"><table>{caption}<tbody>\n{rows}\n</tbody></table></div>'


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
