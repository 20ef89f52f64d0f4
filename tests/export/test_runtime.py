"""The static runtime compiles and is linted as it stands, in every variant, and keeps to MISRA C.

MISRA C:2012 is kept as far as cppcheck looks, but for what docs/exports.md lists.
"""

import re
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import contextgap as cg
from contextgap.export.c import CompiledPolicy, write_c
from tests.export.compilers import COMPILERS, run, self_test
from tests.export.tables import learnt
from tests.export.test_c import RULES, around, explored, exported

RUNTIME = Path(str(files("contextgap.export.c") / "runtime.c"))
PAGE = Path(__file__).parents[2] / "docs" / "exports.md"
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
needs_cppcheck = pytest.mark.skipif(
    not shutil.which("cppcheck"), reason="cppcheck is not installed"
)


def common(rule):
    """A policy whose arms have common inducing points."""
    method = cg.Method(explorer=cg.METHODS["uniform"].explorer, recommender=RULES[rule][0])
    settings = {"kernel": cg.Gaussian(0.6), "ridge": 0.05, "prior_mean": 0.3, "points": 12}
    rng = np.random.default_rng(4)
    contexts, arms = rng.uniform(-1, 1, (200, 2)), rng.integers(3, size=200)
    learner = cg.Learner(3, method=method, seed=0, **settings)
    return learner.fit(contexts, arms, np.sin(3 * contexts[:, 0] + arms)).freeze()


def plain(rule, kernel="gaussian", **settings):
    return explored(rule, kernel, steps=12, **settings).freeze()


def typed(rule, kernel="trend", **settings):
    return learnt(rule, kernel, steps=12, **settings).freeze()


# A policy and how to export it, for every part of the runtime.
VARIANTS = {
    "means": lambda: (plain("mean"), "mean", {}),
    "means explained": lambda: (plain("mean"), "mean explained", {"float32": True}),
    "upper": lambda: (plain("upper"), "upper", {}),
    "look-back": lambda: (plain("look-back", "nested"), "look-back", {}),
    "level": lambda: (plain("gap", "gaussian and level"), "gap", {}),
    "one arm": lambda: (plain("gap", arms=1), "gap", {"float32": True}),
    "common points": lambda: (common("gap"), "gap", {"float32": True}),
    "common points, explained": lambda: (common("mean"), "mean explained", {}),
    "common points, means": lambda: (common("mean"), "mean", {"eligible": True}),
    "shared": lambda: (plain("gap", sharing=0.5), "gap", {}),
    "shared, one arm": lambda: (plain("mean", sharing=0.5, arms=1), "mean explained", {}),
    "shared, means": lambda: (plain("mean", sharing=0.5), "mean", {"float32": True}),
    "columns": lambda: (typed("gap", "one bandwidth"), "gap", {"float32": True}),
    "columns, explained": lambda: (
        typed("mean").with_fallback(1),
        "mean explained",
        {"eligible": True},
    ),
    "columns, eligible": lambda: (typed("mean").with_fallback(1), "mean", {"eligible": True}),
    "columns, look-back, fallback": lambda: (
        typed("look-back").with_fallback(1, tolerance=1.0),
        "look-back",
        {"float32": True},
    ),
    "shared, eligible, fallback": lambda: (
        typed("upper", sharing=0.5).with_fallback(1, tolerance=1.0),
        "upper",
        {"eligible": True},
    ),
    "fallback": lambda: (plain("look-back").with_fallback(1), "look-back", {}),
    "tolerance": lambda: (plain("mean").with_fallback(1, tolerance=1.0), "mean", {}),
}


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request, tmp_path_factory):
    """An export, and the folder with its tables alone, without the runtime."""
    policy, rule, options = VARIANTS[request.param]()
    folder = tmp_path_factory.mktemp("variant")
    export = exported(policy, folder, rule, self_test=1, **options)
    source = export.source.read_text(encoding="utf-8")
    runtime = RUNTIME.read_text(encoding="utf-8")
    assert source.endswith(runtime)
    (folder / "tables.h").write_text(source.removesuffix(runtime), encoding="utf-8")
    return export


@pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_runtime_compiles_as_it_stands(variant, compiler):
    tables = variant.source.with_name("tables.h")
    done = run(compiler, *WARNINGS, "-fsyntax-only", "-include", tables, RUNTIME)
    assert (done.returncode, done.stderr) == (0, "")


@needs_cppcheck
def test_cppcheck_finds_nothing_in_the_runtime(variant):
    tables = variant.source.with_name("tables.h")
    looks = ("--enable=warning,performance,portability", "--error-exitcode=1", "--max-configs=1")
    # A triangular solve reads the entries before the one it writes, which cppcheck does not see;
    # the memory sanitizer does, below.
    looks += ("--suppress=uninitvar",)
    done = run("cppcheck", "--std=c99", "--quiet", *looks, f"--include={tables}", RUNTIME)
    assert done.returncode == 0, done.stderr


def listed():
    """The rules that docs/exports.md says are not kept."""
    section = PAGE.read_text(encoding="utf-8").split("## MISRA C")[1].split("\n## ")[0]
    return set(re.findall(r"^\| (\d+\.\d+) \|", section, flags=re.MULTILINE))


# Those that together compile every part of the runtime; most are long and rarely break.
PARTS = [
    *("columns, look-back, fallback", "shared, eligible, fallback"),
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            *("means", "means explained", "upper", "look-back", "level", "common points"),
            *("common points, means", "shared", "shared, means", "columns", "columns, explained"),
        )
    ),
]


@needs_cppcheck
@pytest.mark.parametrize("variant", PARTS, indirect=True)
def test_the_source_keeps_to_misra_but_for_what_is_listed(variant):
    options = ("--std=c99", "--addon=misra", "--quiet", "--max-configs=1")
    done = run("cppcheck", *options, variant.source)
    found = set(re.findall(r"misra-c2012-(\d+\.\d+)", done.stderr))
    assert found, done.stderr  # some deviation there always is, or nothing was looked at
    assert found <= listed()


@pytest.mark.skipif("clang" not in COMPILERS, reason="only clang has a memory sanitizer")
@pytest.mark.parametrize("variant", ["look-back", "common points", "shared"], indirect=True)
def test_nothing_is_read_before_it_is_written(variant):
    done = self_test(variant, "clang", "-O1", "-fsanitize=memory", "-fno-sanitize-recover=all")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
@pytest.mark.parametrize("rule", ["mean", "mean explained", "upper", "gap"])
def test_common_points_decide_as_python_does(rule, tmp_path):
    policy = common(rule)
    assert policy.state.model.common_support
    exported(policy, tmp_path, rule)
    contexts = around(300)
    wanted = [policy.arms.index(arm) for arm in policy.recommend(contexts)]
    assert CompiledPolicy(tmp_path, COMPILERS[0]).recommend(contexts).tolist() == wanted


def test_the_package_holds_the_static_files():
    for name in ("runtime.c", "runtime.h", "selftest.c", "batch.c"):
        assert (files("contextgap.export.c") / name).is_file()


def test_another_prefix_is_the_same_runtime(tmp_path):
    export = write_c(plain("gap"), tmp_path, prefix="sensors", self_test=1)
    own = export.source.read_text(encoding="utf-8").replace("sensors_", "contextgap_")
    assert own.replace("SENSORS_", "CONTEXTGAP_").endswith(RUNTIME.read_text(encoding="utf-8"))
