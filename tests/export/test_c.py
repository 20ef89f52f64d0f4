"""The exported C decides as Python does, costs what it says, and compiles without a warning."""

import ast
import math
import shutil
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contextgap as cg
from contextgap.export import ExportError, decision_rule
from contextgap.export.c import CompiledPolicy, CompilerError, compile_shared, write_c
from contextgap.export.c.text import Real, comment_text, string
from contextgap.export.rule import answers_of
from contextgap.kernels import Constant, Warped
from contextgap.methods.recommenders import (
    HighestMean,
    HighestUpper,
    PosteriorSample,
    SmallestGap,
    SmallestGapInHistory,
)
from tests.export.compilers import (
    COMPILERS,
    compiled,
    constant_bytes,
    self_test,
    stack_bytes,
)
from tests.oracle import choice_of

pytestmark = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")

KERNELS = {
    "gaussian": cg.Gaussian(0.6),
    "gaussian per dimension": cg.Gaussian((0.5, 0.9)),
    "gaussian and level": 0.5 * cg.Gaussian((0.5, 0.9)) + 2.0 * Constant(),
    "tiny bandwidth": cg.Gaussian(1e-21) + cg.Gaussian(0.5),
    "matern 1/2": cg.Matern(0.8, 0.5),
    "matern 3/2": cg.Matern((0.8, 1.1), 1.5),
    "matern 5/2": cg.Matern(0.8, 2.5),
    "linear": cg.Linear() + 0.2 * cg.Gaussian(1.0),
    "trend": 0.4 * cg.Linear(unit=(0.5, 2.0), centre=(0.3, -1.0)) + 0.2 * cg.Gaussian(1.0),
    "polynomial": cg.Polynomial(5, 0.7),
    "periodic": cg.Periodic((1.5, 2.0), 0.9),
    "warped": Warped(cg.Gaussian((0.5, 0.9)) + 0.2 * cg.Linear(), (0.3, 0.0), (0.1, 0.0)),
    "nested": 0.5 * (cg.Gaussian(0.7) * cg.Periodic(2.0, (1.0, 1.3)) + 0.3 * cg.Linear())
    + cg.Matern(0.9, 1.5) * (cg.Polynomial(2, 1.0) * cg.Gaussian((2.0, 1.0))),
}
RULES = {
    "mean": (HighestMean(), False),
    "mean explained": (HighestMean(), True),
    "upper": (HighestUpper(), False),
    "gap": (SmallestGap(), False),
    "look-back": (SmallestGapInHistory(), False),
    "short look-back": (SmallestGapInHistory(last=12), False),
}


def explored(rule="gap", kernel="nested", *, arms=3, steps=70, dimension=2, **settings):
    recommender = RULES[rule][0] if isinstance(rule, str) else rule
    kernel = KERNELS[kernel] if isinstance(kernel, str) else kernel
    method = cg.Method(explorer=cg.METHODS["uniform"].explorer, recommender=recommender)
    learner = cg.Learner(
        arms, **{"kernel": kernel, "ridge": 0.05, "prior_mean": 0.3, **settings}, method=method
    )
    rng = np.random.default_rng(4)
    contexts, chosen, rewards = rng.uniform(-1, 1, (steps, dimension)), [], []
    for x in contexts:
        chosen.append(int(rng.integers(arms)))  # different numbers of observations
        rewards.append(math.sin(3 * x[0] + chosen[-1]) + 0.1 * rng.standard_normal())
    return learner.fit(contexts, [learner.arms[arm] for arm in chosen], rewards)


def exported(policy, folder, rule="gap", **settings):
    return write_c(policy, folder, certificates=RULES[rule][1], **settings)


def assert_same_decisions(policy, export, contexts, relative=1e-9):
    """Arms, means, widths, gaps and certificates are Python's, near ties apart."""
    library = compiled(export)
    contexts = contexts.astype(library.dtype).astype(np.float64)
    wanted = np.array([policy.arms.index(arm) for arm in policy.recommend(contexts)])
    got = library.decide(contexts)
    assert not got.status.any()
    np.testing.assert_array_equal(library.recommend(contexts), got.arm)
    believed = [policy.decide(x) for x in contexts[:10]]
    scale = max(1.0, *(np.abs([d.lower, d.upper]).max() for d in believed))
    tolerance = relative * scale if library.dtype == np.float64 else export.tolerance
    assert tolerance < 2e-2 * scale  # so that agreement says something
    np.testing.assert_allclose(got.mean[:10], [d.mean for d in believed], atol=tolerance, rtol=0)
    for i in np.flatnonzero(got.arm != wanted):
        assert margin(policy, contexts[i], got.arm[i], wanted[i]) <= 2 * tolerance
    assert (got.arm != wanted).mean() <= (0 if library.dtype == np.float64 else 0.02)
    if library.has_widths:
        widths = [d.upper - d.lower for d in believed]
        np.testing.assert_allclose(got.width[:10], widths, atol=2 * tolerance, rtol=0)
        gaps = [d.gap for d in believed]
        np.testing.assert_allclose(got.gap[:10], gaps, atol=2 * tolerance, rtol=0)
        bound = policy.certificate(contexts).bound
        # A look-back that rounding decides finds another arm with as small a gap.
        look_back = isinstance(policy.method.recommender, SmallestGapInHistory)
        same = (got.arm == wanted) | look_back
        np.testing.assert_allclose(got.certificate[same], bound[same], atol=2 * tolerance, rtol=0)


def margin(policy, context, one, other):
    """By how much the scores of two arms differ."""
    by_arm = scores_at(policy, context[None])[0]
    return abs(by_arm[one] - by_arm[other])


def scores_at(policy, contexts):
    return answers_of(policy, decision_rule(policy), contexts).scores


@pytest.mark.parametrize("rule", RULES)
def test_the_recommended_arm_has_the_smallest_score(rule):
    learner = explored(rule, "gaussian", arms=4)
    learner.remove_arm(2)
    policy = learner.freeze()
    choice, by_arm = choice_of(policy, around(300)), scores_at(policy, around(300))
    np.testing.assert_array_equal(by_arm.argmin(axis=1), choice.arm)
    if "gap" in rule or "look-back" in rule:
        np.testing.assert_allclose(by_arm.min(axis=1), choice.gap, rtol=1e-12)


def around(count, dimension=2, seed=7):
    return np.random.default_rng(seed).uniform(-1.3, 1.3, (count, dimension))


@pytest.mark.parametrize(
    ("rule", "kernel"),
    [("gap", kernel) for kernel in KERNELS]
    + [(rule, kernel) for rule in ("mean", "look-back") for kernel in ("gaussian", "nested")],
)
def test_decisions_are_pythons_in_double(rule, kernel, tmp_path):
    policy = explored(rule, kernel).freeze()
    export = exported(policy, tmp_path, rule, self_test=20)
    assert_same_decisions(policy, export, around(2000))


@pytest.mark.parametrize(
    ("rule", "kernel"),
    [("gap", kernel) for kernel in KERNELS if kernel != "tiny bandwidth"]
    + [(rule, "nested") for rule in RULES if rule != "gap"],
)
def test_decisions_are_pythons_in_float(rule, kernel, tmp_path):
    policy = explored(rule, kernel).freeze()
    export = exported(policy, tmp_path, rule, self_test=100, float32=True)
    assert_same_decisions(policy, export, around(2000))


def test_what_float_cannot_tell_apart_is_reported(tmp_path):
    # An observed context rounded to float is many bandwidths from where it was.
    policy = explored(kernel="tiny bandwidth").freeze()
    with pytest.warns(UserWarning, match="single precision changes"):
        export = write_c(policy, tmp_path, float32=True)
    assert export.near_ties == 200
    assert f"less than {export.tolerance:.1e}" in export.header.read_text().replace("\n * ", " ")


@pytest.mark.parametrize("rule", ["upper", "mean explained", "short look-back"])
def test_other_forms_decide_as_python_does(rule, tmp_path):
    policy = explored(rule).freeze()
    assert_same_decisions(policy, exported(policy, tmp_path, rule), around(2000))


@pytest.mark.parametrize("width", [cg.RidgeWidth(0.2), cg.TheoremWidth(0.1, 1.0, 0.1, tight=True)])
@pytest.mark.parametrize("rule", ["upper", "look-back"])
def test_any_width(rule, width, tmp_path):
    policy = explored(rule, "matern 5/2", width=width).freeze()
    export = exported(policy, tmp_path, rule)
    assert_same_decisions(policy, export, around(1000))
    promised = "with probability 0.9." in export.header.read_text()
    assert promised == isinstance(width, cg.TheoremWidth)


@pytest.mark.parametrize("rule", RULES)
def test_retired_arms_and_arms_without_observations(rule, tmp_path):
    learner = explored(rule, "gaussian", arms=4, steps=60)
    learner.remove_arm(1)
    learner.add_arm("new")
    policy = learner.freeze()
    assert_same_decisions(policy, exported(policy, tmp_path, rule), around(1000))


@pytest.mark.parametrize("rule", RULES)
def test_one_arm_one_dimension(rule, tmp_path):
    policy = explored(rule, cg.Gaussian(0.3), arms=1, steps=9, dimension=1).freeze()
    export = exported(policy, tmp_path, rule)
    assert_same_decisions(policy, export, around(50, dimension=1))
    assert self_test(export, COMPILERS[0]).returncode == 0


@pytest.mark.parametrize("rule", RULES)
def test_nothing_observed_of_the_arms_left(rule, tmp_path):
    learner = explored(rule, "linear", arms=2, steps=12)
    for label in ("x", "y"):
        learner.add_arm(label)
    for label in (0, 1):
        learner.remove_arm(label)
    policy = learner.freeze()
    export = exported(policy, tmp_path, rule)
    assert_same_decisions(policy, export, around(50))
    assert not choice_of(policy, around(50)).arm.any()  # ties go to the lowest index
    assert self_test(export, COMPILERS[0]).returncode == 0


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(("rule", "float32"), [("mean explained", True), ("look-back", False)])
def test_the_self_test_passes_and_sanitizers_find_nothing(rule, float32, compiler, tmp_path):
    export = exported(explored(rule).freeze(), tmp_path, rule, float32=float32)
    sanitized = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = self_test(export, compiler, *sanitized)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"200 contexts, {export.near_ties} of them near ties: 0 other")
    assert done.stdout.endswith("passed\n")


@pytest.mark.parametrize("rule", ["mean", "gap"])
def test_the_self_test_fails_where_numbers_are_wrong(rule, tmp_path):
    export = exported(explored(rule, "gaussian").freeze(), tmp_path, rule)
    table = "weights[70] = {\n" if rule == "mean" else "innovations[70] = {\n"
    text = export.source.read_text()
    assert table in text
    export.source.write_text(text.replace(table, f"{table}    10 *"))
    done = self_test(export, COMPILERS[0])
    assert done.returncode == 1
    assert done.stdout.endswith("FAILED\n")


def test_given_contexts_are_the_self_tests(tmp_path):
    export = write_c(explored().freeze(), tmp_path, contexts=around(1500))
    done = self_test(export, COMPILERS[0])
    assert done.stdout.startswith("1500 contexts")
    assert done.returncode == 0


@pytest.mark.parametrize("rule", RULES)
def test_input_that_is_not_finite_gives_the_fallback_and_says_so(rule, tmp_path):
    learner = explored(rule, "gaussian", arms=3)
    policy = learner.freeze()
    export = exported(policy, tmp_path, rule)
    library = compiled(export)
    observed = np.concatenate([arm.support for arm in decision_rule(policy).arms])
    average = np.mean([policy.decide(x).mean for x in observed], axis=0)
    assert export.default_arm == library.default_arm == average.argmax()
    bad = np.array([[np.nan, 0.0], [0.0, np.inf], [-np.inf, np.nan]])
    got = library.decide(bad)
    assert got.arm.tolist() == library.recommend(bad).tolist() == [export.default_arm] * 3
    assert got.status.tolist() == [1, 1, 1]
    if library.has_widths:
        assert np.isinf(got.certificate).all()


@pytest.mark.parametrize("rule", RULES)
def test_results_that_overflow_give_the_fallback_and_say_so(rule, tmp_path):
    export = exported(explored(rule, "polynomial").freeze(), tmp_path, rule)
    library = compiled(export)
    far = np.array([[1e200, -1e200], [0.1, 0.1]])
    got = library.decide(far)
    assert got.status.tolist() == [2, 0]
    assert got.arm[0] == library.recommend(far)[0] == export.default_arm


@pytest.mark.skipif(not shutil.which("size"), reason="needs binutils")
@pytest.mark.parametrize(
    ("rule", "float32"),
    [("mean", False), ("mean explained", True), ("gap", False), ("look-back", True)],
)
def test_rom_is_what_the_object_holds(rule, float32, tmp_path):
    policy = explored(rule, "gaussian per dimension").freeze()
    export = exported(policy, tmp_path / "c", rule, float32=float32)
    # Beyond the tables an object has literals of the code, and gaps for alignment.
    assert abs(constant_bytes(export, COMPILERS[0], tmp_path) - export.rom_bytes) <= 256
    assert f"ROM {export.rom_bytes} bytes" in export.header.read_text()


@pytest.mark.skipif(not shutil.which("gcc"), reason="only gcc tells the size of stack frames")
@pytest.mark.parametrize("rule", RULES)
def test_ram_is_what_the_stack_holds(rule, tmp_path):
    held, said = [], []
    for arms, steps in [(2, 20), (9, 400)]:
        policy = explored(rule, "gaussian", arms=arms, steps=steps).freeze()
        export = exported(policy, tmp_path / "c", rule)
        assert f"RAM {export.ram_bytes} bytes" in export.header.read_text()
        held.append(stack_bytes(export, tmp_path))
        said.append(export.ram_bytes)
    # Addresses and scalars take the same for both. Where recommend and decide are separate, the
    # decision is in no frame but the caller's.
    decision = 8 * (9 - 2) * 2 if rule == "mean explained" else 0
    assert abs((held[1] - held[0]) - (said[1] - said[0])) <= decision + 32
    assert said[1] < held[1] < said[1] + 1600


def test_the_highest_mean_takes_no_factor_along(tmp_path):
    policy = explored("mean", "gaussian").freeze()
    small, large = (
        write_c(policy, tmp_path / str(with_widths), certificates=with_widths)
        for with_widths in (False, True)
    )
    sizes = np.bincount(decision_rule(policy).pulls)
    assert large.rom_bytes - small.rom_bytes == 8 * (sizes * (sizes + 1) // 2).sum() + 8 * 3


def test_text_survives(tmp_path):
    labels = ['say "hi"', "back\\slash\n", "what??/", "Zürich 磁", "\x0123", 7, ("a", 1), None]
    columns = ["*/ int evil;", "/* \\", "??/", 'quote"', "été"]
    learner = cg.Learner(labels, kernel=cg.Gaussian(1.0), seed=0)
    for i, label in enumerate(labels):
        learner.tell(dict.fromkeys(columns, 0.1 * i), label, 0.5 * i)
    export = write_c(learner.freeze(), tmp_path)
    library = compiled(export)
    assert library.labels == tuple(x if isinstance(x, str) else repr(x) for x in labels)
    assert library.columns == tuple(columns)
    for compiler in COMPILERS:
        assert self_test(export, compiler).returncode == 0


@given(st.text())
def test_strings_keep_every_byte_and_no_trigraph(text):
    literal = string(text, "a label")
    data = ast.literal_eval("b" + literal)  # Python reads octal escapes as C does
    assert data == text.encode("utf-8", "backslashreplace")
    assert "?" not in literal


@given(st.text(alphabet="/*\\?a\n"))
def test_no_text_ends_a_comment(text):
    safe = comment_text(text)
    assert not any(mark in safe for mark in ("*/", "/*", "\\", "??", "\n"))


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_doubles_read_back_exactly(number):
    assert float(Real(False).literal(number, "it")) == number


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_floats_read_back_exactly(number):
    literal = Real(True).literal(number, "it")
    assert literal.endswith("f")
    assert np.float32(literal[:-1]) == np.float32(number)


def test_files_of_different_exports_do_not_compile_together(tmp_path):
    one, other = (write_c(explored(steps=n).freeze(), tmp_path / str(n)) for n in (20, 21))
    one.header.write_text(other.header.read_text())
    with pytest.raises(CompilerError, match="different exports"):
        compile_shared(tmp_path / "20", COMPILERS[0], into=tmp_path)


def test_the_same_policy_gives_the_same_bytes(tmp_path):
    one, other = (write_c(explored().freeze(), tmp_path / name) for name in "ab")
    for name in ("header", "source", "self_test"):
        assert getattr(one, name).read_bytes() == getattr(other, name).read_bytes()


def test_an_older_export_is_replaced_whole(tmp_path):
    for steps in (20, 40):
        export = write_c(explored(steps=steps).freeze(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "contextgap_policy.c",
        "contextgap_policy.h",
        "contextgap_selftest.c",
    ]
    assert self_test(export, COMPILERS[0]).returncode == 0


def test_options_that_remove_the_checks_are_refused(tmp_path):
    write_c(explored().freeze(), tmp_path)
    with pytest.raises(CompilerError, match="fast-math"):
        CompiledPolicy(tmp_path, COMPILERS[0], flags=("-ffast-math",))


@dataclass(frozen=True)
class Bent(cg.Gaussian):
    """A kernel of a user's own."""

    def __call__(self, left, right):
        return super().__call__(left, right) ** 2


def test_what_cannot_be_expressed_is_refused_and_leaves_no_file(tmp_path):
    target = tmp_path / "export"
    with pytest.raises(ExportError, match="kernel Bent cannot be expressed in C"):
        write_c(explored(kernel=0.5 * Bent(1.0) + cg.Linear()).freeze(), target)
    with pytest.raises(ExportError, match="PosteriorSample"):
        write_c(explored(PosteriorSample()).freeze(), target)
    with pytest.raises(ExportError, match="no finite float is near"):
        write_c(explored(kernel=1e39 * cg.Gaussian(1.0)).freeze(), target, float32=True)
    with pytest.raises(ExportError, match="bandwidth 1e-46 is too small for a float"):
        write_c(explored(kernel=cg.Gaussian(1e-46)).freeze(), target, float32=True)
    learner = cg.Learner(["x" * 5000], kernel=cg.Gaussian(1.0))
    learner.tell([0.0], "x" * 5000, 1.0)
    with pytest.raises(ExportError, match="the label of arm 0 has 5000 bytes"):
        write_c(learner.freeze(), target)
    with pytest.raises(ValueError, match="self_test must be at least 1, got 0"):
        write_c(explored().freeze(), target, self_test=0)
    with pytest.raises(ValueError, match="at least one context"):
        write_c(explored().freeze(), target, contexts=np.empty((0, 2)))
    assert not target.exists()


def test_scikit_learns_kernels_are_refused(tmp_path):
    kernels = pytest.importorskip("sklearn.gaussian_process.kernels")
    kernel = cg.SklearnKernel(kernels.RBF(1.0))
    with pytest.raises(ExportError, match="SklearnKernel"):
        write_c(explored(kernel=kernel).freeze(), tmp_path)


def test_building_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no contextgap_policy"):
        compile_shared(tmp_path)
    with pytest.raises(CompilerError, match="looked for no-such-compiler"):
        compile_shared(tmp_path, "no-such-compiler")
    write_c(explored().freeze(), tmp_path)
    with pytest.raises(ValueError, match=r"shape \(m, 2\), got \(3,\)"):
        CompiledPolicy(tmp_path).recommend(np.zeros(3))
