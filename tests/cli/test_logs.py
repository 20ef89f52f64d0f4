"""contextgap learn on logs of other tools, and on the standard input."""

import gzip
import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import contextgap as cg
from tests.cli.test_policies import call

LOGS = Path(__file__).parent.parent / "logs"


@pytest.mark.parametrize("name", ["cb.vw", "adf.vw", "log.dsjson.gz", "service.dsjson"])
def test_a_log_of_vowpal_wabbit_needs_no_options(name, tmp_path):
    said = json.loads(call("learn", LOGS / name, "-o", tmp_path / "p.cgap", "--json").stdout)
    log = cg.io.read_vw(LOGS / name)
    policy = cg.Policy.load(tmp_path / "p.cgap")
    assert policy.arms == log.labels
    assert said["card"]["estimator"] == "doubly robust"
    assert said["card"]["rewards"] == len(log)
    assert policy.columns == tuple(log.contexts.names)
    expected = log.fit(seed=0, width=cg.PosteriorWidth(2.0)).freeze()
    assert policy.recommend(log.contexts).tolist() == expected.recommend(log.contexts).tolist()


def rows():
    rng = np.random.default_rng(0)
    return [
        {"x": x, "arm": arm, "reward": x if arm == "a" else -x}
        for x, arm in zip(rng.normal(size=40).tolist(), ["a", "b"] * 20, strict=True)
    ]


def written():
    lines = "".join(json.dumps(row) + "\n" for row in rows())
    table = "x,arm,reward\n" + "".join(f"{r['x']},{r['arm']},{r['reward']}\n" for r in rows())
    vw = "".join(f"{'ab'.index(r['arm']) + 1}:{-r['reward']}:0.5 | x:{r['x']}\n" for r in rows())
    return {"jsonl": lines, "csv": table, "vw": vw}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "vw"])
@pytest.mark.parametrize("compressed", [False, True])
def test_files_and_the_standard_input_are_the_same(kind, compressed, tmp_path, monkeypatch):
    given = written()[kind].encode()
    given = gzip.compress(given) if compressed else given
    path = tmp_path / f"log.{kind}{'.gz' if compressed else ''}"
    path.write_bytes(given)
    call("learn", path, "-o", tmp_path / "file.cgap")
    monkeypatch.setattr(
        "contextgap.cli.policies.sys", SimpleNamespace(stdin=io.TextIOWrapper(io.BytesIO(given)))
    )
    said = call("learn", "-", "-o", tmp_path / "input.cgap").stdout
    assert "learnt from 40 trials in the standard input" in said
    one, two = (cg.Policy.load(tmp_path / name) for name in ("file.cgap", "input.cgap"))
    contexts = [{"x": -1.0}, {"x": 1.0}]
    assert one.recommend(contexts).tolist() == two.recommend(contexts).tolist()
    assert one.recommend(contexts).tolist() == ([2, 1] if kind == "vw" else ["b", "a"])


def test_recommendations_for_json_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(written()["jsonl"])
    call("learn", path, "-o", tmp_path / "p.cgap")
    call("recommend", tmp_path / "p.cgap", path, "-o", tmp_path / "answers.parquet")
    pandas = pytest.importorskip("pandas")
    answers = pandas.read_parquet(tmp_path / "answers.parquet")
    assert len(answers) == 40
    assert answers["recommended_arm"].tolist() == ["a" if row["x"] > 0 else "b" for row in rows()]


def test_a_log_without_the_usual_names_says_so(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("x,a,r\n1,2,3\n")
    said = call("learn", path, "-o", tmp_path / "p.cgap", code=2).stderr
    assert "there is no column 'arm'; the columns are" in " ".join(said.split())
