"""The page in a real browser, on a service that runs, beside what the campaign itself says."""

import re
import shutil
from urllib.parse import quote

import httpx
import numpy as np
import pytest

import contextgap as cg
from contextgap.team.campaign.database import Database
from contextgap.team.service.access import create_token
from tests.studies.report.test_browser import BROWSERS

from .conftest import COLUMNS, draw, explore, serving

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NAME = "sensors <img src=x onerror=alert(1)> & a/b"
ARMS = ("hull", "panel", "<b onclick=alert(2)>boom</b>")
WAIT = 15_000  # milliseconds; the machine may be busy


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser to render with: none of {', '.join(BROWSERS)} is on the path")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('page') / 'bench.db'}?synchronous=normal"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("log") / "log"


@pytest.fixture(scope="module")
def campaign(database):
    made = cg.Campaign.create(database, NAME, ARMS, columns=COLUMNS, seed=0)
    explore(made, np.random.default_rng(0), 60)
    made.ask(draw(np.random.default_rng(1)))
    made.freeze("first <i>flight</i>")
    yield made
    made.close()


@pytest.fixture(scope="module")
def address(database, campaign, log):
    with serving(database, log) as found:
        yield found.url


@pytest.fixture
def open_page(browser):
    """Opens pages; whatever a page complains about fails the test."""
    complaints, contexts = [], []

    def opened(url, *, width=1280, scheme="light", but=()):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)

        def note(text):
            if not any(each in text for each in but):
                complaints.append(text)

        page.on("console", lambda m: m.type in ("error", "warning") and note(m.text))
        page.on("pageerror", lambda error: note(str(error)))
        page.on("dialog", lambda dialog: note(dialog.message))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(open_page, address):
    """The page of the campaign, as it is when all of it was fetched."""
    found = open_page(f"{address}/#/campaigns/{quote(NAME, safe='')}")
    found.wait_for_selector(".live.on")
    return found


def tile(page, name: str):
    return page.locator(f".tile:has(dt:text-is('{name}')) strong")


def numbers(page, chart: str) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table beside a chart.

    The table comes a moment after the click and again with every update, so it is read at once.
    """
    section = page.get_by_role("region", name=chart, exact=True).first
    section.get_by_text("As a table").click()
    heads, *rows = section.locator("table").evaluate(
        "table => [...table.rows].map(row => [...row.cells].map(cell => cell.innerText))"
    )
    return heads, rows


def said_at_the_end(page, section) -> str:
    """What a chart says of its last point; an update that draws it anew says nothing at first."""
    said = section.locator("output")
    for _ in range(5):
        section.locator("svg").focus()
        page.keyboard.press("End")
        if text := said.inner_text():
            return text
    raise AssertionError("the chart says nothing of its last point")


def test_the_list_leads_to_a_campaign_whose_name_is_text(open_page, address, campaign):
    page = open_page(address)
    link = page.get_by_role("link", name=NAME)
    row = link.locator("xpath=ancestor::tr")
    assert row.locator("td").nth(0).inner_text() == str(len(campaign.find_trials()))
    link.click()
    playwright.expect(page.locator("h1")).to_have_text(NAME, timeout=WAIT)
    page.wait_for_selector(".live.on")
    assert page.locator("main img, main b, main i").count() == 0
    assert page.title() == f"{NAME} · contextgap"


def test_charts_show_what_the_log_holds(page, address, campaign):
    trials = campaign.find_trials()
    assert tile(page, "Trials").inner_text() == str(len(trials))
    assert tile(page, "Rewards").inner_text() == str(len(campaign.find_trials("told")))
    heads, rows = numbers(page, "Picks over time")
    assert set(heads[1:]) == set(ARMS)
    for place, arm in enumerate(heads[1:]):
        expected = sum(trial.arm == arm for trial in trials)
        assert sum(int(row[1 + place]) for row in rows) == expected
    section = page.get_by_role("region", name="Picks over time", exact=True).first
    assert section.locator("svg path.stack").count() == len(ARMS)
    newest = " · ".join(f"{arm} {n}" for arm, n in zip(heads[1:], rows[-1][1:], strict=True))
    assert said_at_the_end(page, section).endswith(newest)
    series = httpx.get(f"{address}/page/campaigns/{quote(NAME, safe='')}/series").json()
    newest = series["progress"][-1]
    _, rows = numbers(page, "Progress")
    assert rows[-1][0] == str(newest["rewards"])
    assert rows[-1][1] == f"{100 * newest['settled']:.1f}\u00a0%"


def test_what_is_not_known_yet_is_loading_and_not_nothing(open_page, address, campaign):
    page, held, wait = open_page("about:blank"), [], [True]

    def hold(route):
        held.append(route) if wait else route.continue_()

    page.route(re.compile(r"/(columns|score|policies)$"), hold)
    page.goto(f"{address}/#/campaigns/{quote(NAME, safe='')}")
    page.wait_for_selector(".live.on")
    told = campaign.status().trials["told"]
    assert tile(page, "Rewards").inner_text() == str(told)
    for name in ("Belief along a column", "Why this arm?", "Score card", "Policies"):
        section = page.get_by_role("region", name=name, exact=True).first
        section.scroll_into_view_if_needed()
        playwright.expect(section.get_by_text("Loading …")).to_be_visible(timeout=WAIT)
    assert not re.search("nothing to|needs two|No policy", page.locator("main").inner_text())
    wait.clear()
    for route in held:
        route.continue_()
    playwright.expect(page.get_by_text("Loading …")).to_have_count(0, timeout=WAIT)


def test_before_the_first_reward_it_says_so(open_page, database, address):
    cg.Campaign.create(database, "new", ARMS, seed=0).close()
    page = open_page(f"{address}/#/campaigns/new")
    for text in ("nothing to believe", "nothing to explain", "needs two rewards", "No policy was"):
        playwright.expect(page.get_by_text(text)).to_be_visible(timeout=WAIT)


def test_another_clients_reward_appears_without_a_reload(page, address, campaign):
    page.evaluate("window.untouched = true")
    before = int(tile(page, "Rewards").inner_text())
    here = f"{address}/v1/campaigns/{quote(NAME, safe='')}"
    asked = httpx.post(f"{here}/ask", json={"contexts": draw(np.random.default_rng(5))})
    trial = asked.raise_for_status().json()["trial"]["id"]
    httpx.post(f"{here}/tell", json={"trial": trial, "reward": 0.5}).raise_for_status()
    wanted = tile(page, "Rewards")
    playwright.expect(wanted).to_have_text(str(before + 1), timeout=WAIT)
    campaign.tell(campaign.ask(draw(np.random.default_rng(6))), 0.5)  # another process
    playwright.expect(wanted).to_have_text(str(before + 2), timeout=WAIT)
    page.locator(".trials").scroll_into_view_if_needed()
    first = page.locator(".trials tbody tr").first.locator("th")
    newest = str(campaign.find_trials()[-1].id)
    playwright.expect(first).to_have_text(newest, timeout=WAIT)
    assert page.evaluate("window.untouched") is True


def tab_to(page, label: str) -> None:
    for _ in range(400):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == label:
            return
    raise AssertionError(f"the keyboard does not reach {label!r}")


def test_a_reward_is_retracted_with_the_keyboard_alone(page, campaign):
    number = campaign.find_trials("told")[-2].id
    page.locator(".trials").scroll_into_view_if_needed()
    page.wait_for_selector(f"[aria-label='retract trial {number}']")
    tab_to(page, f"retract trial {number}")
    page.keyboard.press("Enter")
    dialog = page.locator("dialog")
    page.keyboard.type("the sensor <b>fell</b> off")
    page.keyboard.press("Tab")  # cancel
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    playwright.expect(dialog).to_contain_text("The reward is retracted.", timeout=WAIT)
    page.keyboard.press("Enter")  # close
    dialog.wait_for(state="detached")
    trial = campaign.trial(number)
    assert (trial.state, trial.why) == ("retracted", "the sensor <b>fell</b> off")
    row = page.locator(".trials tbody tr.retracted").first
    playwright.expect(row).to_contain_text("the sensor <b>fell</b> off", timeout=WAIT)


def test_a_correction_needs_a_reason_and_says_what_it_means(page, campaign):
    page.locator(".trials").scroll_into_view_if_needed()
    page.locator(".filters input").fill("eco")
    rows = page.locator(".trials tbody tr")
    told = [t.id for t in campaign.find_trials("told") if t.context["mode"] == "eco"][::-1]
    playwright.expect(rows.first).to_contain_text("mode eco", timeout=WAIT)
    number = told[len(told) // 2]  # rests under the policy
    page.get_by_label(f"correct trial {number}", exact=True).click()
    dialog = page.locator("dialog")
    playwright.expect(dialog.locator(".flag")).to_contain_text("first <i>flight</i>")
    dialog.get_by_label("Right reward").fill("0.125")
    dialog.get_by_role("button", name="Correct the reward").click()
    assert campaign.trial(number).why is None  # no reason yet
    dialog.get_by_label("Reason").fill("wrong unit")
    dialog.get_by_role("button", name="Correct the reward").click()
    playwright.expect(dialog).to_contain_text("The reward is corrected.", timeout=WAIT)
    assert re.search(r"first <i>flight</i>\s+\d+ of \d+ contexts", dialog.inner_text())
    dialog.get_by_role("button", name="Close").click()
    assert campaign.trial(number).reward == 0.125
    (flagged,) = [each for each in campaign.policies() if number in each.recalled]
    flag = page.locator("td .flag").first
    playwright.expect(flag).to_contain_text(str(number), timeout=WAIT)
    assert flagged.name == "first <i>flight</i>"


@pytest.mark.parametrize("mode", ["eco", "missing"])
def test_reasons_for_a_typed_context(page, campaign, mode):
    why = page.get_by_role("region", name="Why this arm?")
    why.scroll_into_view_if_needed()
    why.get_by_label("temperature").fill("1.5")
    why.get_by_label("hour").fill("6")
    why.get_by_label("mode").select_option(mode)
    why.get_by_role("button", name="Explain").click()
    context = {"temperature": 1.5, "hour": 6.0, "mode": None if mode == "missing" else mode}
    policy = campaign.learner().freeze()
    playwright.expect(why.locator(".answer")).to_contain_text(
        f"The answer is {policy.recommend(context)},", timeout=WAIT
    )
    arms = why.locator("table").first.locator("tbody th").all_inner_texts()
    assert arms == [each.arm for each in policy.rank(context)]
    numbers = why.locator("table").nth(1).locator("tbody th").all_inner_texts()
    explained = policy.explain(context, most=6)
    rewards = [campaign.trial(int(n)).reward for n in numbers if n.isdecimal()]
    assert rewards == [each.reward for each in explained.trials]
    expected = policy.explain(context, arms[-1]).difference
    with page.expect_response("**/why"):
        why.locator(".against").select_option(arms[-1])
    page.wait_for_timeout(200)
    said = why.locator(".versus strong").inner_text().split(" ± ")[0].replace("−", "-")
    assert float(said) == pytest.approx(expected, rel=0.01)


def test_belief_along_a_column_that_is_chosen(page, campaign):
    belief = page.get_by_role("region", name="Belief along a column", exact=True)
    belief.scroll_into_view_if_needed()
    belief.get_by_label("Column").select_option("mode")
    playwright.expect(belief.locator("svg title").first).to_have_text(
        "What is believed along mode", timeout=WAIT
    )
    _, rows = numbers(page, "Belief along a column")
    assert {row[0] for row in rows} == {"eco", "boost", "missing"}


def test_a_frozen_policy_is_downloaded_and_decides(page, campaign, tmp_path, rng):
    policies = page.get_by_role("region", name="Policies", exact=True)
    policies.scroll_into_view_if_needed()
    policies.get_by_label("Name").fill("second flight")
    policies.get_by_label("Fallback arm").select_option("panel")
    policies.get_by_label("Tolerance").fill("0.5")
    policies.get_by_role("button", name="Freeze").click()
    playwright.expect(policies).to_contain_text("“second flight” is frozen", timeout=WAIT)
    with page.expect_download() as download:
        policies.get_by_label("second flight as .cgap").click()
    assert download.value.suggested_filename == "second flight.cgap"
    download.value.save_as(tmp_path / "policy.cgap")
    loaded = cg.Policy.load(tmp_path / "policy.cgap")
    assert (loaded.fallback.arm, loaded.fallback.tolerance) == ("panel", 0.5)
    contexts = [draw(rng) for _ in range(20)]
    frozen = campaign.policy("second flight")
    assert list(loaded.recommend(contexts)) == list(frozen.recommend(contexts))


def test_a_deployed_policy_has_a_page(page, campaign, address, rng):
    campaign.freeze("in use")
    policies = page.get_by_role("region", name="Policies", exact=True)
    policies.scroll_into_view_if_needed()
    policies.get_by_role("link", name="Watch in use").click()
    audits = page.get_by_role("region", name="Audits", exact=True)
    playwright.expect(audits).to_contain_text("No reward was measured yet", timeout=WAIT)
    assert page.locator(".verdict").inner_text() == "No alarm."
    path = f"{address}/v1/campaigns/{quote(NAME, safe='')}/policies/in%20use"
    rows = [draw(rng) | {"temperature": 30.0} for _ in range(100)]
    arms = httpx.post(f"{path}/recommend", json={"contexts": rows}).json()["arms"]
    audit = {"contexts": rows[:2], "arms": arms[:2], "rewards": [0.1, 0.1]}
    report = httpx.post(f"{path}/watch/tell", json=audit).json()["watch"]
    playwright.expect(tile(page, "Rows")).to_have_text("100", timeout=WAIT)
    said = page.locator(".verdict").inner_text()
    assert said == f"Alarm: {report['alarm']['advice']}."
    assert "temperature is outside what was seen" in said
    playwright.expect(audits).to_contain_text("value of the policy")
    shift = numbers(page, "Shift")
    assert shift[0] == ["up to row", "evidence"]
    assert shift[1][-1][0] == "100"
    traffic = page.get_by_role("region", name="Traffic", exact=True)
    assert "temperature" in traffic.inner_text()
    assert page.title() == f"in use · {NAME} · contextgap"
    page.get_by_role("link", name=NAME).click()
    page.wait_for_selector(".live.on")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_scrolls_tables_and_not_the_page(open_page, address, scheme):
    page = open_page(address, width=400, scheme=scheme)
    page.get_by_role("link", name=NAME).click()
    page.wait_for_selector(".live.on")
    page.locator(".why").scroll_into_view_if_needed()
    page.get_by_role("button", name="Explain").click()
    page.wait_for_selector(".answer")
    page.locator(".trials").scroll_into_view_if_needed()
    page.locator(".trials tbody tr").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    boxes = page.locator(".wide").evaluate_all("all => all.map(e => e.scrollWidth > e.clientWidth)")
    assert any(boxes)
    paper, ink = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    light = [sum(map(int, re.findall(r"\d+", part)[:3])) / 3 for part in (paper, ink)]
    assert (
        (light[0] < 50 < 200 < light[1]) if scheme == "dark" else (light[0] > 200 > 50 > light[1])
    )


def test_the_theme_is_chosen_and_kept(open_page, address):
    page = open_page(address)
    button = page.locator("#theme")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    button.click()
    button.click()
    playwright.expect(button).to_have_text("Theme: dark")
    dark = page.evaluate(paper)
    assert dark != light
    page.reload()
    assert page.evaluate(paper) == dark


def test_scripts_of_others_do_not_run(open_page, address):
    page = open_page(address, but=("Content Security Policy",))
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.body.append(script);
          const image = document.createElement("div");
          image.innerHTML = "<img src=data:, onerror='window.ran = true'>";
          document.body.append(image);
        }"""
    )
    page.wait_for_timeout(300)
    assert page.evaluate("window.ran") is None


def test_a_token_is_asked_for_once(open_page, database, campaign, tmp_path):
    opened = Database(database)
    token = create_token(opened, "page", ["read"])
    opened.close()
    with serving(database, tmp_path / "log", tokens=True) as service:
        page = open_page(f"{service.url}/#token={token}")
        page.get_by_role("link", name=NAME).wait_for()
        assert page.evaluate("location.hash") == ""
        page.close()
        page = open_page(service.url, but=("401 (Unauthorized)", "403 (Forbidden)"))
        for typed in ("cgap_wrong", token):
            page.locator("dialog input").fill(typed)
            page.locator("dialog button").click()
            page.wait_for_timeout(1200)  # unknown tokens are looked up once a second
        page.get_by_role("link", name=NAME).click()
        page.wait_for_selector(".live.on")
        page.reload()
        page.wait_for_selector(".live.on")
        page.locator(".trials").scroll_into_view_if_needed()
        page.get_by_label(re.compile("retract trial")).first.click()
        page.get_by_label("Reason").fill("may not")
        page.get_by_role("button", name="Retract the reward").click()
        playwright.expect(page.locator("dialog")).to_contain_text("needs the scope explore")
        page.close()  # it would look for the service, which stops now
