"""Take docs/images/campaign-page*.png: the live page of a made-up campaign, in a real browser.

Usage: python docs/page_shots.py
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import pandas as pd
from playwright.sync_api import Browser, Page, sync_playwright

import contextgap as cg

NAME = "magnetometer placement"
ARMS = ("hull", "panel", "boom", "tail")
IMAGES = Path(__file__).parent / "images"
COLUMNS = {"temperature": "number", "hour": cg.Cyclic(24), "mode": "category"}


def draw(rng: np.random.Generator) -> dict[str, object]:
    return {
        "temperature": round(float(rng.uniform(-10, 35)), 1),
        "hour": round(float(rng.uniform(0, 24)), 1),
        "mode": str(rng.choice(["eco", "boost", "night"])),
    }


def reward(context: dict, arm: str, rng: np.random.Generator) -> float:
    warm = (context["temperature"] - 12) / 22
    noon = np.cos(2 * np.pi * (context["hour"] - 14) / 24)
    expected = {
        "hull": 0.35 + 0.4 * np.sin(2.2 * warm),
        "panel": 0.45 + 0.3 * noon - 0.1 * warm,
        "boom": 0.4 - 0.45 * np.tanh(1.5 * warm) + (0.2 if context["mode"] == "night" else -0.1),
        "tail": 0.3 + 0.1 * noon * warm,
    }
    return float(expected[arm] + 0.12 * rng.normal())


def explore(database: str, trials: int = 420) -> None:
    """Make a campaign to which everything happened that can happen."""
    rng = np.random.default_rng(7)
    reference = pd.DataFrame([draw(rng) for _ in range(200)])
    goal = cg.StoppingRule(0.1, reference=reference)
    with cg.Campaign.create(database, NAME, ARMS, goal=goal, columns=COLUMNS, seed=0) as campaign:
        for number in range(trials):
            context = draw(rng)
            trial = campaign.ask(context)
            if number % 53 == 52:
                campaign.cancel(trial)
            elif number % 61 != 40:
                campaign.tell(trial, reward(context, trial.arm, rng))
            if number == trials // 2:
                campaign.freeze("first flight", fallback="hull", tolerance=0.5)
        campaign.retract(trials // 3, "the sensor was unplugged")
        campaign.retract(trials - 8, "a test of the alarm")
        campaign.correct(trials - 12, 0.41, "told in the wrong unit")


@contextmanager
def serving(database: str) -> Iterator[str]:
    command = [sys.executable, "-m", "contextgap", "serve", "--port", "0", "--no-tokens"]
    command += ["--database", database]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        yield words[words.index("at") + 1].rstrip(";")
    finally:
        process.terminate()
        process.wait()


def fill(page: Page) -> None:
    """Wait for all parts of a campaign's page; ask it for an explanation and for a watch."""
    page.wait_for_selector(".live.on")
    for part in (".why", ".trials"):
        page.locator(part).scroll_into_view_if_needed()
        page.wait_for_timeout(1500)
    page.locator(".trials tbody tr").first.wait_for()
    why = page.locator(".why")
    why.get_by_label("temperature").fill("8")
    why.get_by_label("hour").fill("10")
    why.get_by_role("button", name="Explain").click()
    page.locator(".answer").wait_for()
    page.locator(".facts div").first.wait_for()
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_timeout(1500)


def shoot(browser: Browser, address: str, ending: str, width: int, most: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(f"{address}/#/campaigns/{quote(NAME)}")
    fill(page)
    height = min(most, page.evaluate("document.documentElement.scrollHeight"))
    path = IMAGES / f"campaign-page{ending}.png"
    clip = {"x": 0, "y": 0, "width": width, "height": height}
    page.screenshot(path=path, full_page=True, clip=clip)
    page.close()
    print(f"written to {path.name}")


def ask(address: str) -> None:
    """Ask a watched policy, at contexts like those explored, and then at warmer ones; audit it."""
    rng, path = np.random.default_rng(3), f"v1/campaigns/{quote(NAME)}/policies/first flight"
    with httpx.Client(base_url=address, timeout=60) as http:
        http.get(f"{path}/watch").raise_for_status()
        for number in range(14):
            rows = [draw(rng) for _ in range(100)]
            if number > 11:
                rows = [row | {"temperature": float(rng.uniform(30, 50))} for row in rows]
            http.post(f"{path}/recommend", json={"contexts": rows}).raise_for_status()
        drawn = http.post(f"{path}/watch/audit", json={"contexts": rows, "k": 8}).json()
        measured = [rows[place] for place in drawn["places"]]
        pairs = zip(measured, drawn["arms"], strict=True)
        rewards = [min(max(reward(each, arm, rng), 0.0), 1.0) for each, arm in pairs]
        told = {"contexts": measured, "rewards": rewards, **drawn}
        del told["places"]
        http.post(f"{path}/watch/tell", json=told).raise_for_status()


def shoot_policy(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/#/campaigns/{quote(NAME)}/policies/first%20flight")
    page.locator(".chart").first.wait_for()
    page.wait_for_timeout(1500)
    page.screenshot(path=IMAGES / "policy-page.png", full_page=True)
    print("written to policy-page.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        database = f"sqlite:///{Path(folder) / 'bench.db'}?synchronous=normal"
        explore(database)
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        with serving(database) as address:
            ask(address)
            shoot_policy(browser, address)
            shoot(browser, address, "", 1280, 3400, "light")
            shoot(browser, address, "-dark", 1280, 1150, "dark")
            shoot(browser, address, "-400", 400, 2300, "light")
        browser.close()


if __name__ == "__main__":
    main()
