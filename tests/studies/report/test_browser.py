from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from matplotlib.image import imread

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
    "--v=0",
    "--window-size=1000,3000",
)
# Sorts by the column of our means, once and then downwards, as the Enter key does: by a click.
SORT = """<script>
for (const button of document.querySelectorAll("table.sortable th button"))
  if (button.textContent === "ours") for (let i = 0; i < CLICKS; i++) button.click();
</script></body>"""


# Writes into the page what its look is on a narrow screen: a frame of 400 pixels.
MEASURE = """<body><iframe src="{page}" style="width:400px;height:3000px"></iframe>
<p id="found"></p>
<script>
document.querySelector("iframe").onload = (event) => {{
  const inner = event.target.contentDocument;
  const broken = [...inner.querySelectorAll(".sortable td:first-child")].filter((cell) => {{
    const range = inner.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1;
  }});
  const style = event.target.contentWindow.getComputedStyle(inner.body);
  document.getElementById("found").textContent = JSON.stringify({{
    page: inner.documentElement.scrollWidth,
    scrolling: [...inner.querySelectorAll(".wide")].some((box) => box.scrollWidth > 400),
    broken: broken.map((cell) => cell.textContent),
    paper: style.backgroundColor,
    ink: style.color,
  }});
}};
</script></body>"""


@pytest.fixture(scope="module")
def browse(tmp_path_factory):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser to render with: none of {', '.join(BROWSERS)} is on the path")
    profile = tmp_path_factory.mktemp("profile")

    def run(path, *arguments):
        command = [browser, *FLAGS, f"--user-data-dir={profile}", *arguments, path.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    return run


def complaints(stderr):
    return [
        line
        for line in stderr.splitlines()
        if "CONSOLE" in line and re.search("error|uncaught|refused|violat", line, re.IGNORECASE)
    ]


def test_the_page_renders_without_console_errors(browse, report_file, tmp_path):
    picture = tmp_path / "page.png"
    done = browse(report_file, f"--screenshot={picture}")
    assert complaints(done.stderr) == []
    picture = imread(picture)[..., :3]
    pixels = picture[::3, ::3]
    colours = np.unique((pixels * 255).round().astype(int).reshape(-1, 3), axis=0)
    assert picture.shape[:2] == (3000, 1000)
    assert len(colours) > 50
    assert 0.02 < (pixels.min(axis=-1) < 0.9).mean() < 0.5


def test_console_errors_would_be_seen(browse, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text("<script>missing();</script>")
    assert complaints(browse(broken, f"--screenshot={tmp_path / 'page.png'}").stderr)


@pytest.mark.parametrize(("clicks", "order"), [(1, "ascending"), (2, "descending")])
def test_clicks_sort_numbers_as_numbers(browse, report_file, tmp_path, clicks, order):
    sorting = tmp_path / "sorting.html"
    script = SORT.replace("CLICKS", str(clicks))
    text = report_file.read_text(encoding="utf-8").replace("</body>", script)
    sorting.write_text(text, encoding="utf-8")
    dom = browse(sorting, "--dump-dom").stdout
    table = dom[dom.index(f'<th scope="col" aria-sort="{order}"') : dom.index("</table>")]
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    ours = [float(re.findall(r'data-value="([^"]*)"', row)[2]) for row in rows]
    assert len(ours) == 24
    assert ours == sorted(ours, reverse=order == "descending")


@pytest.mark.parametrize("dark", [False, True])
def test_a_narrow_screen_scrolls_tables_and_breaks_no_name(browse, report_file, tmp_path, dark):
    measuring = tmp_path / "measure.html"
    measuring.write_text(MEASURE.format(page=report_file.as_uri()))
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    done = browse(
        measuring,
        "--allow-file-access-from-files",
        "--virtual-time-budget=5000",
        scheme,
        "--dump-dom",
    )
    text = re.search('<p id="found">(.*?)</p>', done.stdout).group(1)
    found = json.loads(html.unescape(text))
    assert found["page"] <= 400
    assert found["scrolling"]
    assert found["broken"] == []
    light = [sum(map(int, re.findall(r"\d+", found[part]))) / 3 for part in ("paper", "ink")]
    assert (light[0] < 50 < 200 < light[1]) if dark else (light[0] > 200 > 50 > light[1])
