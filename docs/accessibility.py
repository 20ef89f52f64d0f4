"""Check pages with axe-core in Chromium: light and dark, 1280 and 400 pixels wide.

The pages are those given as files, the live page of a campaign and the tables that notebooks show.
Fails if axe finds anything serious or critical, or if a page is wider than the window.

Usage: npm install --prefix /tmp/axe axe-core
       python docs/accessibility.py /tmp/axe/node_modules/axe-core/axe.min.js \
           docs/_build/html/index.html docs/_build/html/start.html report.html [--shots FOLDER]
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import numpy as np
import page_shots
import pandas as pd
from playwright.sync_api import Browser, Page, sync_playwright

import contextgap as cg

WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")
NOTEBOOK = """<!doctype html><html lang="en"><meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width"><title>Tables</title>
<main><h1>Tables</h1>{}</main></html>"""


def tables() -> str:
    """Return a page of everything that notebooks show as a table."""
    rng = np.random.default_rng(0)
    learner = cg.Learner(list(page_shots.ARMS), columns=page_shots.COLUMNS, seed=0)
    contexts = [page_shots.draw(rng) for _ in range(80)]
    arms = [learner.ask(context) for context in contexts]
    rewards = [page_shots.reward(*each, rng) for each in zip(contexts, arms, strict=True)]
    seen = pd.DataFrame(contexts)
    learner.fit(seen, arms, rewards)
    policy = learner.freeze()
    watch = policy.watch()
    watch.see(seen)
    _ = policy.card
    shown = [learner, policy, learner.decide(contexts[0]), policy.explain(contexts[0])]
    shown += [policy.certificate(seen), watch]
    return NOTEBOOK.format("\n".join(each._repr_html_() for each in shown))


def check(page: Page, axe: Path, name: str, shots: Path | None) -> bool:
    """Print what is wrong with an open page; return whether something serious is."""
    page.wait_for_timeout(500)
    if shots is not None:
        height = min(4000, page.evaluate("document.documentElement.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": height}
        path = shots / f"{name.replace(' ', '-')}.png"
        page.screenshot(path=path, full_page=True, clip=clip, timeout=120_000)
    page.add_script_tag(path=axe)
    found = page.evaluate("axe.run()")["violations"]
    counts = Counter(str(each["impact"]) for each in found for _ in each["nodes"])
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    said = ", ".join(f"{count} {impact}" for impact, count in sorted(counts.items())) or "nothing"
    print(f"{name}: {said}" + (f"; {wide} pixels too wide" if wide > 0 else ""), flush=True)
    for each in found:
        print(f"    {each['impact']}: {each['id']} ({len(each['nodes'])}): {each['help']}")
        for node in each["nodes"][:3]:
            print(f"        {node['target']} {node['any'][0]['message'] if node['any'] else ''}")
    return wide > 0 or bool(counts["serious"] + counts["critical"])


def visit(browser: Browser, pages: dict[str, str], axe: Path, shots: Path | None) -> bool:
    failed = False
    for width in WIDTHS:
        for scheme in SCHEMES:
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
            )
            for name, address in pages.items():
                page = context.new_page()
                page.goto(address)
                if "#/campaigns/" in address:
                    page_shots.fill(page)
                failed |= check(page, axe, f"{name} {width} {scheme}", shots)
                page.close()
            context.close()
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("axe", type=Path, help="axe.min.js of axe-core")
    parser.add_argument("files", type=Path, nargs="*", help="pages")
    parser.add_argument("--shots", type=Path, help="a folder for pictures of all pages")
    asked = parser.parse_args()
    if asked.shots is not None:
        asked.shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        notebook = Path(folder) / "tables.html"
        notebook.write_text(tables(), encoding="utf-8")
        database = f"sqlite:///{Path(folder) / 'bench.db'}?synchronous=normal"
        page_shots.explore(database)
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        with page_shots.serving(database) as address:
            pages = {file.stem: file.resolve().as_uri() for file in [*asked.files, notebook]}
            pages["campaigns"] = f"{address}/#/"
            pages["campaign"] = f"{address}/#/campaigns/{quote(page_shots.NAME)}"
            failed = visit(browser, pages, asked.axe, asked.shots)
        browser.close()
    sys.exit(failed)


if __name__ == "__main__":
    main()
