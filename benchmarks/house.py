"""How large the code is, and how much of it common calls pass through.

``python benchmarks/house.py`` prints lines and modules by package, the share of module heads
(docstring and imports), accesses to private attributes of other objects, and the modules and
functions that common calls run. ``--src`` counts another checkout.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

LEARNER = """
import numpy as np
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
learner = cg.Learner(3, seed=0).fit(X, rng.integers(3, size=60), rng.normal(size=60))
"""
POLICY = LEARNER + "policy = learner.freeze()\n"
CAMPAIGN = """
campaign = cg.Campaign.create("c.db", "n", ["a", "b"])
for i in range(14):
    campaign.tell(campaign.ask([float(i % 5), float(i)]).id, 0.1 * i)
trial = campaign.ask([1.0, 2.0])
"""
SERVICE = (
    CAMPAIGN
    + """
from contextgap.service import Settings, create_app
from fastapi.testclient import TestClient
app = create_app("sqlite:///c.db", Settings(tokens="none"))
client = TestClient(app, base_url="http://127.0.0.1")
client.__enter__()
told = {"trial": trial.id, "reward": 0.5}
"""
)
TABLE = """
import contextlib, io
import numpy as np, pandas as pd
import contextgap.cli as cli
rng = np.random.default_rng(0)
columns = {"x": rng.normal(size=120), "m": rng.choice(["u", "v"], 120)}
columns |= {"arm": rng.choice(["a", "b"], 120), "r": rng.normal(size=120)}
pd.DataFrame(columns).to_csv("t.csv", index=False)
sys.argv = ["contextgap", "learn", "t.csv", "--arm", "arm", "--reward", "r", "-o", "p.cgap"]
def run():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        cli.main()
run()
"""
CALLS = {
    "Learner.ask": (LEARNER, "learner.ask(X[0])"),
    "Learner.tell": (LEARNER, "learner.tell(X[0], 1, 0.5)"),
    "Learner.freeze": (LEARNER, "learner.freeze()"),
    "Policy.recommend": (POLICY, "policy.recommend(X)"),
    "Policy.save": (POLICY, "policy.save('p.cgap')"),
    "Policy.to_c": (POLICY, "policy.to_c('c')"),
    "Campaign.ask": (CAMPAIGN, "campaign.ask([0.5, 0.5])"),
    "Campaign.tell": (CAMPAIGN, "campaign.tell(trial.id, 0.5)"),
    "POST tell": (SERVICE, "client.post('/v1/campaigns/n/tell', json=told).raise_for_status()"),
    "contextgap learn t.csv": (TABLE, "run()"),
}
TRACED = """
import sys, threading
seen = set()
def trace(frame, event, _):
    code = frame.f_code
    if event == "call" and "contextgap" in code.co_filename:
        seen.add((code.co_filename, code.co_qualname))
import contextgap as cg
threading.setprofile(trace)  # of threads that start from here on
{prepare}
seen.clear()
sys.setprofile(trace)
{call}
sys.setprofile(None)
print(len({{file for file, _ in seen}}), len(seen))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, default=Path(__file__).parents[1] / "src")
    source = parser.parse_args().src.resolve()
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for path in (source / "contextgap").rglob("*.py"):
        text = path.read_text()
        tree = ast.parse(text)
        found = (1, text.count("\n"), _head(tree), _private(tree))
        package = path.relative_to(source / "contextgap").parts[0]
        for name in (package, "all"):
            rows[name] = [a + b for a, b in zip(rows[name], found, strict=True)]
    print("package          modules   lines   heads  private")
    for name, (modules, lines, heads, private) in sorted(rows.items(), key=lambda row: row[1][1]):
        print(f"{name:16s} {modules:7d} {lines:7d} {heads / lines:7.1%} {private:8d}")
    print("\ncall                     modules  functions")
    for name, (prepare, call) in CALLS.items():
        print(f"{name:24s} {_crossed(source, prepare, call)}")


def _head(tree: ast.Module) -> int:
    """Return the last line of a module's docstring and imports."""
    end = 0
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not isinstance(node, ast.Import | ast.ImportFrom):
            break
        end = node.end_lineno or 0
    return end


def _private(tree: ast.Module) -> int:
    """Return how often private attributes of other objects are accessed."""
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            value = node.value
            own = isinstance(value, ast.Name) and value.id in ("self", "cls", "other")
            own |= isinstance(value, ast.Call) and getattr(value.func, "id", "") == "super"
            found += not own and not node.attr.startswith("__")
    return found


def _crossed(source: Path, prepare: str, call: str) -> str:
    """Return how many modules and functions a call runs, in all threads."""
    code = TRACED.format(prepare=prepare, call=call)
    environment = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, env=environment, check=False
        )
    if done.returncode:
        return "failed: " + done.stderr.strip().splitlines()[-1]
    modules, functions = done.stdout.split()[-2:]
    return f"{modules:>7s} {functions:>10s}"


if __name__ == "__main__":
    main()
