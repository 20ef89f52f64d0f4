"""The exported source keeps to MISRA C:2012, as far as cppcheck looks, but for what is listed."""

import re
import shutil
from itertools import cycle
from pathlib import Path

import pytest

from contextgap.export.c import write_c
from tests.export.compilers import run
from tests.export.tables import learnt
from tests.export.test_c import KERNELS, RULES, explored

pytestmark = pytest.mark.skipif(not shutil.which("cppcheck"), reason="cppcheck is not installed")
PAGE = Path(__file__).parents[2] / "docs" / "deployment.md"


def listed():
    """The rules that the page on deployment says are not kept."""
    section = PAGE.read_text(encoding="utf-8").split("## MISRA C")[1].split("\n## ")[0]
    return set(re.findall(r"^\| (\d+\.\d+) \|", section, flags=re.MULTILINE))


def broken_rules(policy, folder, **options):
    source = write_c(policy, folder, self_test=1, **options).source
    done = run("cppcheck", "--std=c99", "--addon=misra", "--quiet", source)
    found = re.findall(r"misra-c2012-(\d+\.\d+)", done.stderr)
    assert found, done.stderr  # some deviation there always is, or nothing was looked at
    return set(found)


@pytest.mark.parametrize(("rule", "float32"), list(zip(RULES, cycle([False, True]), strict=False)))
def test_tables(rule, float32, tmp_path):
    policy = learnt(rule, "trend", steps=12).freeze()
    assert broken_rules(policy, tmp_path, float32=float32, certificates=True) <= listed()


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel, tmp_path):
    policy = explored("gap", kernel, steps=12).freeze()
    assert broken_rules(policy, tmp_path) <= listed()


@pytest.mark.parametrize("rule", ["mean", "gap"])
@pytest.mark.parametrize("arms", [1, 3])
def test_arms_that_share_and_one_arm(rule, arms, tmp_path):
    policy = explored(rule, steps=12, arms=arms, sharing=0.5 if arms > 1 else None).freeze()
    assert broken_rules(policy, tmp_path) <= listed()
