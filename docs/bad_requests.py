"""Prints docs/bad_requests.md: bad requests, and what the service answers to each.

``python docs/bad_requests.py`` writes the page anew; the test suite compares both. The script fails
if a bad request changes anything.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import httpx

import contextgap as cg
from contextgap.team.campaign.database import Database
from contextgap.team.service import Settings, create_app
from contextgap.team.service.access import create_token

PAGE = Path(__file__).with_suffix(".md")
HERE = "/v1/campaigns/sensors"
JSON = {"Content-Type": "application/json"}


class Bad(NamedTuple):
    """A request that is refused; text is sent as it is, other bodies as JSON."""

    what: str
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed


OWN = {"name": "new", "arms": 2, "settings": {"colour": "red"}}
BAD = [
    Bad("no JSON", "POST", f"{HERE}/ask", "{contexts"),
    Bad("NaN", "POST", f"{HERE}/ask", '{"contexts": [NaN, 0.0]}'),
    Bad("an infinite number", "POST", f"{HERE}/ask", '{"contexts": [1e999, 0.0]}'),
    Bad("a name twice", "POST", f"{HERE}/tell", '{"trial": 1, "reward": 1, "reward": 2}'),
    Bad("nested too deeply", "POST", f"{HERE}/ask", "[" * 100_000),
    Bad("no UTF-8", "POST", f"{HERE}/ask", b"\xff"),
    Bad("a form", "POST", f"{HERE}/ask", "contexts=1", {"Content-Type": "text/plain"}),
    Bad("a list for a body", "POST", f"{HERE}/ask", []),
    Bad("an unknown field", "POST", f"{HERE}/ask", {"context": [0.0, 0.0]}),
    Bad("no context", "POST", f"{HERE}/ask", {}),
    Bad("a number too few", "POST", f"{HERE}/ask", {"contexts": [0.0]}),
    Bad("text for a number", "POST", f"{HERE}/ask", {"contexts": [0.0, "warm"]}),
    Bad("a cell that is a list", "POST", f"{HERE}/ask", {"contexts": {"a": [1]}}),
    Bad("a date that is none", "POST", f"{HERE}/ask", {"contexts": [{"date": "soon"}, 1]}),
    Bad("one row or two", "POST", f"{HERE}/ask", {"contexts": [{"date": "2024-05-01"}] * 2}),
    Bad("a table of rows and cells", "POST", f"{HERE}/ask", {"contexts": [[0.0, 0.0], 1]}),
    Bad(
        "levels that are no names",
        "POST",
        f"{HERE}/ask",
        {"contexts": {"table": {"columns": ["x"], "rows": [[0]], "levels": [{"x": 1}]}}},
    ),
    Bad("a context that is too wide", "POST", f"{HERE}/ask", {"contexts": [0.0] * 1001}),
    Bad("no rows", "POST", f"{HERE}/ask", {"contexts": []}),
    Bad("contexts and a pool", "POST", f"{HERE}/ask", {"contexts": [0, 0], "pool": [[0, 0]]}),
    Bad("an unknown arm", "POST", f"{HERE}/ask", {"contexts": [0, 0], "arms": ["wing"]}),
    Bad("no eligible arm", "POST", f"{HERE}/ask", {"contexts": [0, 0], "arms": []}),
    Bad("arms that are no list", "POST", f"{HERE}/ask", {"contexts": [0, 0], "arms": "hull"}),
    Bad("a lease of no length", "POST", f"{HERE}/ask", {"contexts": [0, 0], "lease": 0}),
    Bad("a lease in words", "POST", f"{HERE}/ask", {"contexts": [0, 0], "lease": "long"}),
    Bad("an empty key", "POST", f"{HERE}/ask", {"contexts": [0, 0], "key": " "}),
    Bad(
        "two keys",
        "POST",
        f"{HERE}/ask",
        {"contexts": [0, 0], "key": "a"},
        {"Idempotency-Key": "b"},
    ),
    Bad("a key used before", "POST", f"{HERE}/ask", {"contexts": [9, 9], "key": "first"}),
    Bad("too many contexts", "POST", f"{HERE}/ask", {"contexts": [[0, 0]] * 1001}),
    Bad("a reward in words", "POST", f"{HERE}/tell", {"trial": 1, "reward": "much"}),
    Bad("no reward", "POST", f"{HERE}/tell", {"trial": 1}),
    Bad("a trial that is not there", "POST", f"{HERE}/tell", {"trial": 99, "reward": 1}),
    Bad("a trial told before", "POST", f"{HERE}/tell", {"trial": 2, "reward": 2}),
    Bad("half a trial", "POST", f"{HERE}/tell", {"trial": 1.5, "reward": 1}),
    Bad("a trial twice", "POST", f"{HERE}/tell", {"trial": [1, 1], "reward": [1, 1]}),
    Bad("too few rewards", "POST", f"{HERE}/tell", {"trial": [1, 2], "reward": [1]}),
    Bad(
        "a trial and outside data",
        "POST",
        f"{HERE}/tell",
        {"trial": 1, "reward": 1, "arms": "hull"},
    ),
    Bad("outside data, no arm", "POST", f"{HERE}/tell", {"contexts": [0, 0], "reward": 1}),
    Bad("no reason", "POST", f"{HERE}/trials/2/retract", {"why": ""}),
    Bad("no reward to take back", "POST", f"{HERE}/trials/1/retract", {"why": "typo"}),
    Bad("a trial that is no number", "POST", f"{HERE}/trials/one/cancel", {}),
    Bad("cancelled too late", "POST", f"{HERE}/trials/2/cancel", {}),
    Bad("a number beyond 64 bits", "GET", f"{HERE}/trials/{2**63}"),
    Bad("NUL in a search", "GET", f"{HERE.replace('v1', 'page')}/trials?text=%00"),
    Bad("an unknown state", "GET", f"{HERE}/trials?state=gone"),
    Bad("too many at once", "GET", f"{HERE}/trials?most=100000"),
    Bad("frozen too early", "POST", f"{HERE}/policies", {"name": "first"}),
    Bad("a policy that is not there", "GET", f"{HERE}/policies/none/cgap"),
    Bad("a tolerance in words", "POST", f"{HERE}/policies", {"name": "p", "tolerance": "1"}),
    Bad("a criterion that is none", "POST", f"{HERE}/tune", {"criterion": "magic"}),
    Bad("an arm that is there", "POST", f"{HERE}/arms/add", {"arm": "hull"}),
    Bad("an arm that is a list", "POST", f"{HERE}/arms/add", {"arm": ["hull"]}),
    Bad("a campaign that is there", "POST", "/v1/campaigns", {"name": "sensors", "arms": 2}),
    Bad("too many arms", "POST", "/v1/campaigns", {"name": "new", "arms": 10**6}),
    Bad("a campaign without arms", "POST", "/v1/campaigns", {"name": "new", "arms": []}),
    Bad(
        "an unknown setting",
        "POST",
        "/v1/campaigns",
        {"name": "n", "arms": 2, "settings": {"x": 1}},
    ),
    Bad(
        "an unknown kernel",
        "POST",
        "/v1/campaigns",
        {"name": "n", "arms": 2, "settings": {"kernel": {"type": "os.system"}}},
    ),
    Bad(
        "a method that would be imported",
        "POST",
        "/v1/campaigns",
        {"name": "n", "arms": 2, "settings": {"method": "antigravity:fly"}},
    ),
    Bad("a campaign that is not there", "GET", "/v1/campaigns/none/status"),
    Bad("a path that is not there", "GET", "/v2/campaigns"),
    Bad("another method", "DELETE", HERE),
    Bad("an unknown token", "GET", HERE, None, {"Authorization": "Bearer x"}),
    Bad("a token for reading", "POST", f"{HERE}/tune", {}, {"Authorization": "Bearer {read}"}),
    Bad("another page's request", "POST", f"{HERE}/tune", {}, {"Origin": "http://evil.example"}),
    Bad("a host of others", "GET", HERE, None, {"Host": "evil.example"}),
]


async def answers(folder: Path) -> list[tuple[Bad, int, str]]:
    """Send all bad requests to a service; raise if one changes anything or is carried out."""
    file = folder / "bench.db"
    campaign = cg.Campaign.create(file, "sensors", ["hull", "panel", "boom"], seed=0)
    campaign.ask([0.0, 0.0], key="first")
    campaign.tell(contexts=[1.0, 0.5], arms="hull", reward=1.0)
    before, secret = campaign.status().log, create_token(Database(file), "reader", ["read"])
    service = create_app(file, Settings(rows=1000, tokens="none"))
    transport = httpx.ASGITransport(app=service)
    found = []
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        for bad in BAD:
            headers = {n: text.replace("{read}", secret) for n, text in bad.headers.items()}
            body = bad.body if isinstance(bad.body, str | bytes) else json.dumps(bad.body)
            how = {} if bad.body is None else {"content": body}
            answer = await http.request(bad.method, bad.path, headers={**JSON, **headers}, **how)
            if answer.is_success:
                raise RuntimeError(f"{bad.what} was taken: {answer.text}")
            detail = re.sub(r"told at \S+;", "told at (a time);", answer.json()["detail"])
            found.append((bad, answer.status_code, detail))
            if campaign.status().log != before or cg.Campaign.names(file) != ("sensors",):
                raise RuntimeError(f"{bad.what} changed something")
    service.state.service.close()
    return found


def shown(bad: Bad) -> str:
    """A request in one line."""
    if bad.body is None or bad.headers:
        return f"{bad.method} {bad.path.replace(HERE, '...')}"
    plain = (
        repr if isinstance(bad.body, bytes) else str if isinstance(bad.body, str) else json.dumps
    )
    text = plain(bad.body)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return f"{bad.method} {bad.path.replace(HERE, '...')} {text}"


def page() -> str:
    """Return the page."""
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(answers(Path(folder)))
    lines = [
        f"| {bad.what} | `{shown(bad)}` | {status} | {said} |".replace("\\", "\\\\")
        for bad, status, said in rows
    ]
    return f"""# Bad requests

How the service answers bad requests. The messages are the library's, and none of these requests
changes anything. `python docs/bad_requests.py` writes this page, and the test suite checks it.

The campaign has three arms, an open trial and one with a reward. `...` stands for `{HERE}`.

| | request | status | detail |
|---|---|---:|---|
{chr(10).join(lines)}
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
