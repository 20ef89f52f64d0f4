"""The exported watch has the numbers of Python's, and costs what it says."""

import numpy as np
import pytest

import contextgap as cg
from contextgap.export.c import write_c
from tests.export.compilers import COMPILERS, STRICT, compiled, constant_bytes, run, self_test
from tests.export.test_c import explored

ROUNDING = 1e-5  # wealth is a float in C

pytestmark = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")


def seen_by(watch, rows):
    """Return Python's evidence after each row."""
    found = []
    for row in rows:
        watch.see(row)
        found.append(watch.evidence)
    return np.array(found)


@pytest.mark.parametrize("rule", ["mean", "mean explained", "gap", "upper", "look-back"])
@pytest.mark.parametrize("block", [1, 3])
def test_the_exported_watch_has_pythons_numbers(rule, block, tmp_path):
    policy = explored(rule, steps=240).freeze()
    watch = policy.watch(0.01, block=block)
    settings = {"certificates": rule == "mean explained"}
    code = compiled(write_c(policy, tmp_path, watch=watch, **settings))
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.uniform(-1, 1, (300, 2)), rng.uniform(-1, 2, (200, 2))])
    evidence, alarm = code.watched(rows)
    assert evidence == pytest.approx(seen_by(watch, rows), rel=ROUNDING)
    assert alarm == watch.alarm.row > 300


def test_columns_and_a_fallback_are_watched_alike(tmp_path):
    rng = np.random.default_rng(1)
    rows = [{"mode": "ab"[i % 2], "load": float(rng.random())} for i in range(150)]
    tried = rng.integers(2, size=150)
    rewards = [float((row["mode"] == "a") == arm) for row, arm in zip(rows, tried, strict=True)]
    policy = cg.Learner(2).fit(rows, tried, rewards).freeze().with_fallback(1)
    watch = policy.watch()
    code = compiled(write_c(policy, tmp_path, watch=watch))
    columns = {name: place for place, name in enumerate(code.columns)}
    new = np.empty((60, 2))
    new[:, columns["mode"]] = [code.encode("mode", "ab"[i % 2]) for i in range(60)]
    new[:, columns["load"]] = np.linspace(0, 3, 60)
    evidence, _ = code.watched(new)
    given = [{"mode": "ab"[i % 2], "load": load} for i, load in enumerate(np.linspace(0, 3, 60))]
    assert evidence == pytest.approx(seen_by(watch, given), rel=ROUNDING)


@pytest.mark.parametrize(("block", "bytes_of_each"), [(1, 48), (3, 56)])
def test_the_watch_is_small_and_the_export_says_what_it_needs(block, bytes_of_each, tmp_path):
    policy = explored(steps=240).freeze()
    watch = policy.watch(block=block)
    export = write_c(policy, tmp_path, watch=watch, prefix="flight", eligible=True)
    assert self_test(export, COMPILERS[0], "-O1").returncode == 0
    assert abs(constant_bytes(export, COMPILERS[0], tmp_path) - export.rom_bytes) <= 256
    size = tmp_path / "size.c"
    size.write_text(
        '#include "flight_policy.h"\n#include <stdio.h>\n'
        'int main(void) { printf("%u", (unsigned)sizeof(flight_watch)); return 0; }\n'
    )
    built = run(COMPILERS[0], "-std=c99", *STRICT, size, "-o", tmp_path / "size")
    assert built.returncode == 0, built.stderr
    size = 12 + 4 * len(policy.arms) + bytes_of_each * watch.scores.size
    assert size <= int(run(tmp_path / "size").stdout) <= size + 4  # a multiple of 8 with doubles


def test_exports_without_a_watch_have_none_of_it(tmp_path):
    export = write_c(explored().freeze(), tmp_path)
    assert "watch" not in export.source.read_text() + export.header.read_text()


def test_only_a_new_watch_of_the_same_policy_is_exported(tmp_path):
    policy, other = explored(steps=240).freeze(), explored(steps=241).freeze()
    used = policy.watch()
    used.see([0.0, 0.0])
    for watch in (other.watch(), used):
        with pytest.raises(ValueError, match="of this policy and have seen nothing"):
            policy.to_c(tmp_path, watch=watch)
    with pytest.raises(TypeError, match="watch must be a Watch"):
        policy.to_c(tmp_path, watch=True)
    assert not list(tmp_path.iterdir())
