"""The graph gives the decisions that the policy gives."""

import json
import sys
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
import pytest

import contextgap as cg
from contextgap.base.files import FileFormatError
from contextgap.export import ExportError
from contextgap.export.onnx import GraphPolicy, write_onnx
from contextgap.kernels import Constant, Kernel, Warped
from tests.oracle import choice_of

KERNELS = {
    "gaussian": cg.Gaussian(0.6),
    "gaussian per dimension": cg.Gaussian((0.4, 0.9)),
    "matern 0.5": cg.Matern(0.8, smoothness=0.5),
    "matern 1.5": cg.Matern((0.8, 0.5), smoothness=1.5),
    "matern 2.5": cg.Matern(0.8),
    "linear": cg.Linear(),
    "trend": 0.4 * cg.Linear(unit=(0.5, 2.0), centre=(0.3, -1.0)) + 0.2 * cg.Gaussian(1.0),
    "polynomial": cg.Polynomial(5, 0.7),
    "periodic": cg.Periodic(1.3, 0.8),
    "constant": cg.Gaussian(0.8) + 2.3 * Constant(),  # 2.3 is rounded in single precision
    "periodic per dimension": cg.Periodic((1.3, 2.0), (0.8, 1.1)),
    "warped": Warped(cg.Gaussian((0.4, 0.9)) + 0.2 * cg.Linear(), (0.3, 0.0), (0.1, 0.0)),
    "nested": 0.5 * (cg.Gaussian(0.6) + 0.1 * cg.Linear()) * cg.Matern(1.0)
    + 0.2 * cg.Polynomial(2, 1.0) * cg.Periodic(2.0, 1.0),
}
RECOMMENDERS = {
    "mean": cg.HighestMean(),
    "upper": cg.HighestUpper(),
    "gap": cg.SmallestGap(),
    "history": cg.SmallestGapInHistory(),
    "last 20": cg.SmallestGapInHistory(last=20),
}
LABELS = ["a", "b", "c", "d"]


def explored(recommender, kernel=KERNELS["gaussian"], steps=90, arms=LABELS, d=2, **settings):
    rng = np.random.default_rng(3)
    learner = cg.Learner(
        arms,
        kernel=kernel,
        ridge=0.03,
        method=cg.Method(explorer=cg.explorers.Uniform(), recommender=recommender),
        **{"prior_mean": 0.4, "seed": 0, **settings},
    )
    for x in rng.uniform(-1, 1, (steps, d)):
        arm = learner.ask(x)
        learner.tell(x, arm, float(np.sin(3 * x[0] * (1 + arms.index(arm)) + x[-1])))
    return learner


def contexts_for(policy, count, seed=9):
    """Random contexts, some far away, and the observed ones, where std is smallest."""
    rng = np.random.default_rng(seed)
    d = policy.dimension
    far = rng.uniform(-30, 30, (20, d))
    return np.vstack(
        [rng.uniform(-1.5, 1.5, (count, d)), far, policy.state.model.observed.contexts]
    )


def scores(policy, rows):
    """What the recommender compares, made so that higher is better; contexts by arms."""
    belief = policy.chooser.evidence(rows).belief
    kind = type(policy.method.recommender)
    return {cg.HighestMean: belief.mean, cg.HighestUpper: belief.upper}.get(kind, -belief.gap)


def indices(policy, rows):
    return choice_of(policy, rows).arm


def written(policy, tmp_path, **options):
    path = tmp_path / "policy.onnx"
    write_onnx(policy, path, **options)
    return GraphPolicy(path, threads=1)


def assert_same(policy, graph, rows):
    """Decisions are the policy's, and where they are not, it is for a near-tie."""
    arms, expected = graph.recommend(rows), indices(policy, rows)
    other = np.flatnonzero(arms != expected)
    assert len(other) <= 0.002 * len(rows)
    if isinstance(policy.method.recommender, cg.SmallestGapInHistory):
        assert not len(other)
    table = scores(policy, rows[other])
    lost = table[np.arange(len(other)), expected[other]] - table[np.arange(len(other)), arms[other]]
    scale = np.maximum(1.0, np.abs(table).max(axis=-1, initial=0.0))
    assert (np.abs(lost) < 1e-9 * scale).all()


# Every kernel with one rule, and every rule with kernels of both kinds: sums, and distances alone.
pairs = pytest.mark.parametrize(
    ("recommender", "kernel"),
    [("gap", kernel) for kernel in KERNELS]
    + [
        (rule, kernel)
        for rule in RECOMMENDERS
        if rule != "gap"
        for kernel in ("gaussian", "nested")
    ],
)


@pairs
def test_decisions_are_the_policys(recommender, kernel, tmp_path):
    policy = explored(RECOMMENDERS[recommender], KERNELS[kernel]).freeze()
    assert_same(policy, written(policy, tmp_path), contexts_for(policy, 2000))


@pairs
def test_what_is_believed_is_what_the_policy_believes(recommender, kernel, tmp_path):
    policy = explored(RECOMMENDERS[recommender], KERNELS[kernel]).freeze()
    graph = written(policy, tmp_path, explain=True)
    rows = np.random.default_rng(1).uniform(-1.5, 1.5, (20, 2))
    found = graph.explain(rows)
    for i, x in enumerate(rows):
        decision = policy.decide(x)
        assert graph.labels[found["arm"][i]] == decision.arm
        for name in ("mean", "std", "lower", "upper", "gap"):
            np.testing.assert_allclose(found[name][i], getattr(decision, name), rtol=0, atol=1e-8)
    bound = policy.certificate(rows).bound
    np.testing.assert_allclose(found["certificate"], bound, rtol=0, atol=1e-8)


@pytest.mark.parametrize("recommender", RECOMMENDERS)
@pytest.mark.parametrize("count", [256, 300])
def test_arms_of_several_panels(recommender, count, tmp_path):
    rng = np.random.default_rng(4)
    rows, arms = rng.uniform(-1, 1, (2 * count, 2)), np.arange(2 * count) % 2
    method = cg.Method(explorer=cg.explorers.Uniform(), recommender=RECOMMENDERS[recommender])
    learner = cg.Learner(2, kernel=cg.Matern(0.5), ridge=0.01, method=method)
    policy = learner.fit(rows, arms, np.sin(4 * rows[:, 0] * (1 + arms))).freeze()
    graph = written(policy, tmp_path, explain=True)
    contexts = contexts_for(policy, 300)
    assert_same(policy, graph, contexts)
    found, belief = graph.explain(contexts), policy.chooser.evidence(contexts).belief
    for name in ("mean", "std", "gap"):
        np.testing.assert_allclose(found[name], getattr(belief, name), rtol=0, atol=1e-8)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_distances_do_not_cancel_far_from_the_origin(smoothness, tmp_path):
    # Observed contexts themselves, at 1000 with a bandwidth of 0.8: expanding |x − y|² would be
    # wrong by 1e-10, and its root by 1e-5.
    rng = np.random.default_rng(0)
    rows = 1000 + rng.uniform(-1, 1, (60, 2))
    learner = cg.Learner(2, kernel=cg.Matern(0.8, smoothness=smoothness), ridge=1e-3)
    learner.fit(rows, np.arange(60) % 2, np.sin(3 * rows[:, 0]))
    policy = learner.freeze()
    found = written(policy, tmp_path, explain=True).explain(rows)
    belief = policy.chooser.evidence(rows).belief
    np.testing.assert_allclose(found["mean"], belief.mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found["std"], belief.std, rtol=0, atol=1e-10)


@pytest.mark.parametrize("recommender", RECOMMENDERS)
def test_single_precision_mostly_agrees_and_loses_little(recommender, tmp_path):
    policy = explored(RECOMMENDERS[recommender]).freeze()
    rows = np.random.default_rng(5).uniform(-1.5, 1.5, (4000, 2))
    arms = written(policy, tmp_path, float32=True).recommend(rows)
    expected = indices(policy, rows)
    assert (arms == expected).mean() > 0.995
    if not isinstance(policy.method.recommender, cg.SmallestGapInHistory):
        table, each = scores(policy, rows), np.arange(len(rows))
        assert (table[each, expected] - table[each, arms]).max() < 1e-4


def test_single_precision_certificates_are_close(tmp_path):
    policy = explored(cg.SmallestGapInHistory()).freeze()
    rows = np.random.default_rng(5).uniform(-1.5, 1.5, (2000, 2))
    found = written(policy, tmp_path, float32=True, explain=True).explain(rows)
    assert found["certificate"].dtype == np.float32
    bound = policy.certificate(rows).bound
    np.testing.assert_allclose(found["certificate"], bound, rtol=0, atol=1e-4)


@pytest.mark.parametrize("width", [cg.RidgeWidth(0.1), cg.TheoremWidth(0.1, 1.0, 0.1, tight=True)])
@pytest.mark.parametrize("recommender", ["gap", "history"])
@pytest.mark.parametrize("explain", [False, True])
def test_retired_arms_and_other_widths(width, recommender, explain, tmp_path):
    learner = explored(RECOMMENDERS[recommender], width=width)
    learner.remove_arm("b")
    learner.add_arm("new")
    policy = learner.freeze()
    graph = written(policy, tmp_path, explain=explain)
    assert graph.labels == ("a", "c", "d", "new")
    rows = contexts_for(policy, 2000)
    assert_same(policy, graph, rows)
    if explain:
        bound = policy.certificate(rows).bound
        np.testing.assert_allclose(graph.explain(rows)["certificate"], bound, rtol=0, atol=1e-8)


@pytest.mark.parametrize("recommender", RECOMMENDERS)
def test_all_observed_arms_may_be_gone(recommender, tmp_path):
    learner = explored(RECOMMENDERS[recommender], kernel=cg.Linear(), arms=["a", "b"], steps=6)
    learner.add_arm("c")
    learner.add_arm("d")
    for arm in "ab":
        learner.remove_arm(arm)
    found = written(learner.freeze(), tmp_path, explain=True).explain(np.ones((3, 2)))
    assert found["arm"].tolist() == [0, 0, 0]
    np.testing.assert_allclose(found["mean"], np.full((3, 2), 0.4))
    np.testing.assert_allclose(found["std"], np.full((3, 2), np.sqrt(2)))
    np.testing.assert_allclose(found["certificate"], np.full(3, 2 * np.sqrt(2)))


@pytest.mark.parametrize("recommender", RECOMMENDERS)
@pytest.mark.parametrize("explain", [False, True])
def test_a_single_arm_and_one_dimension(recommender, explain, tmp_path):
    policy = explored(RECOMMENDERS[recommender], arms=["only"], d=1, steps=10).freeze()
    graph = written(policy, tmp_path, explain=explain)
    rows = np.linspace(-1, 1, 7)[:, None]
    assert graph.recommend(rows).tolist() == [0] * 7
    if explain:
        found = graph.explain(rows)
        assert not found["gap"].any()
        assert not found["certificate"].any()
        np.testing.assert_allclose(
            found["std"], policy.chooser.evidence(rows).belief.std, atol=1e-8
        )


@pytest.mark.parametrize("recommender", RECOMMENDERS)
def test_exact_ties_go_to_the_lowest_index(recommender, tmp_path):
    # Three arms with the same observations: after every round of three all scores are equal.
    method = cg.Method(explorer=cg.explorers.Uniform(), recommender=RECOMMENDERS[recommender])
    learner = cg.Learner(3, kernel=cg.Gaussian(1.0), method=method)
    for x in (0.0, 1.0, 1.0, 2.0):
        for arm in range(3):
            learner.tell([x], arm, x)
    policy = learner.freeze()
    rows = np.linspace(-1, 3, 50)[:, None]
    np.testing.assert_array_equal(written(policy, tmp_path).recommend(rows), indices(policy, rows))


def test_an_exact_tie_of_two_steps_goes_to_the_earlier(tmp_path):
    # All numbers are whole: k = 400, L = 25, v = 16, std from 20 to 12. After arm 0 paid 25 its
    # gap is 20 − (16 − 12) = 16; after arm 1 paid 37.5 that one's is 16 + 12 − (24 − 12) = 16.
    learner = cg.Learner(
        2,
        kernel=400.0 * cg.Linear(),
        ridge=225.0,
        method="contextual-gap-history",
        burn_in=0,
    )
    learner.tell([1.0], 0, 25.0)
    learner.tell([1.0], 1, 37.5)
    policy = learner.freeze()
    found = written(policy, tmp_path, explain=True).explain([[1.0]])
    assert found["certificate"].tolist() == policy.certificate([1.0]).bound.tolist() == [16.0]
    assert found["gap"].tolist() == [[32.0, 16.0]]
    assert found["arm"].tolist() == [0]
    assert policy.recommend([1.0]) == 0


@pytest.mark.parametrize(
    ("recommender", "kernel"),
    [*((rule, "gaussian") for rule in RECOMMENDERS), ("gap", "matern 0.5"), ("gap", "nested")],
)
@pytest.mark.parametrize("float32", [False, True])
def test_rows_that_are_not_finite_get_no_answer(recommender, float32, kernel, tmp_path):
    policy = explored(RECOMMENDERS[recommender], KERNELS[kernel]).freeze()
    rows = np.zeros((6, 2))
    rows[1, 0], rows[2, 1], rows[4, 0], rows[4, 1] = np.nan, np.inf, -np.inf, np.nan
    graph = written(policy, tmp_path, float32=float32, explain=True)
    found = graph.explain(rows)
    bad = np.array([False, True, True, False, True, False])
    assert (found["arm"][bad] == -1).all()
    assert (found["arm"][~bad] == indices(policy, rows[:1])[0]).all()
    for name in ("mean", "std", "lower", "upper", "gap"):
        assert np.isnan(found[name][bad]).all()
        assert np.isfinite(found[name][~bad]).all()
    assert np.isinf(found["certificate"][bad]).all()
    assert np.isfinite(found["certificate"][~bad]).all()


@pytest.mark.parametrize("recommender", ["upper", "gap", "history"])
def test_numbers_that_overflow_get_no_answer(recommender, tmp_path):
    policy = explored(RECOMMENDERS[recommender], cg.Linear()).freeze()
    found = written(policy, tmp_path, explain=True).explain([[1e200, 1.0], [1.0, 1.0]])
    assert found["arm"][0] == -1
    assert found["arm"][1] >= 0
    assert found["certificate"][0] == np.inf


@pytest.mark.parametrize(
    ("recommender", "float32"), [*((rule, False) for rule in RECOMMENDERS), ("gap", True)]
)
@pytest.mark.parametrize("opset", [12, 13, 18, 21])
def test_files_are_valid_at_every_opset(recommender, opset, float32, tmp_path):
    policy = explored(RECOMMENDERS[recommender], KERNELS["nested"], steps=24).freeze()
    path = tmp_path / "policy.onnx"
    about = write_onnx(policy, path, opset=opset, float32=float32, explain=True)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", opset)]
    assert about.opset == opset
    assert about.size == path.stat().st_size
    assert about.outputs == tuple(output.name for output in model.graph.output)
    rows = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    agree = GraphPolicy(path).recommend(rows) == indices(policy, rows)
    assert agree.mean() > (0.98 if float32 else 0.999)


def test_the_default_is_the_oldest_format(tmp_path):
    path = tmp_path / "policy.onnx"
    write_onnx(explored(cg.SmallestGap()).freeze(), path)
    model = onnx.load(path)
    assert model.opset_import[0].version == 12
    assert model.ir_version == 7
    with pytest.raises(ValueError, match="opset must be"):
        write_onnx(explored(cg.SmallestGap()).freeze(), path, opset=11)


def test_files_hold_no_more_than_they_need(tmp_path):
    def largest(recommender, **options):
        path = tmp_path / "policy.onnx"
        write_onnx(explored(recommender, steps=120).freeze(), path, **options)
        return sorted(max(tensor.dims, default=0) for tensor in onnx.load(path).graph.initializer)

    def squares(recommender, **options):
        path = tmp_path / "policy.onnx"
        write_onnx(explored(recommender, steps=120).freeze(), path, **options)
        tensors = onnx.load(path).graph.initializer
        return sum(list(tensor.dims) == [30, 30] for tensor in tensors)

    assert squares(cg.HighestMean()) == 0
    assert squares(cg.HighestMean(), explain=True) == 4
    assert squares(cg.SmallestGap()) == squares(cg.SmallestGapInHistory()) == 4
    assert largest(cg.HighestMean())[-1] == 120
    write_onnx(explored(cg.HighestUpper()).freeze(), tmp_path / "policy.onnx")
    operators = {node.op_type for node in onnx.load(tmp_path / "policy.onnx").graph.node}
    assert "ArgMax" in operators
    assert "TopK" not in operators  # which only gaps need


@pytest.mark.parametrize("recommender", RECOMMENDERS)
def test_variances_that_rounding_makes_negative_count_as_zero(recommender, tmp_path):
    # Many observations of few contexts at a ridge next to the rounding of single precision.
    rows = np.tile(np.random.default_rng(0).uniform(-1, 1, (4, 2)), (30, 1))
    method = cg.Method(explorer=cg.explorers.Uniform(), recommender=RECOMMENDERS[recommender])
    learner = cg.Learner(2, kernel=cg.Gaussian(1.0), ridge=1e-7, method=method)
    policy = learner.fit(rows, np.arange(120) // 4 % 2, np.arange(120) // 4 % 2).freeze()
    found = written(policy, tmp_path, float32=True, explain=True).explain(rows[:4])
    assert (found["std"] == 0).any()
    assert found["arm"].tolist() == indices(policy, rows[:4]).tolist() == [1, 1, 1, 1]


def test_the_metadata_describes_the_policy(tmp_path):
    pandas = pytest.importorskip("pandas")
    learner = cg.Learner(
        [("x", 1), 2, "three", None],
        kernel=0.5 * cg.Gaussian((1.0, 2.0)),
        width=cg.TheoremWidth(0.1, 1.0, 0.05),
    )
    frame = pandas.DataFrame({"heat": [0.0, 1.0, 2.0, 3.0], "load": [1.0, 0.0, 1.0, 0.0]})
    learner.fit(frame, [("x", 1), 2, "three", None], [1.0, 2.0, 3.0, 4.0])
    policy = learner.freeze()
    graph = written(policy, tmp_path)
    assert graph.labels == policy.arms
    assert graph.columns == ("heat", "load")
    assert graph.kernel == policy.kernel.describe()
    assert graph.recommender == policy.method.recommender.describe()
    assert graph.probability == policy.probability == 0.95
    assert graph.version == cg.__version__
    stored = {
        entry.key: entry.value for entry in onnx.load(tmp_path / "policy.onnx").metadata_props
    }
    assert json.loads(stored["contextgap.columns"]) == ["heat", "load"]
    shuffled = frame[["load", "heat"]].assign(other=7.0)
    np.testing.assert_array_equal(graph.recommend(shuffled), graph.recommend(frame.to_numpy()))


def test_many_contexts_run_in_blocks(tmp_path, monkeypatch):
    policy = explored(cg.SmallestGapInHistory(), steps=40).freeze()
    rows = np.random.default_rng(2).uniform(-1, 1, (1003, 2))
    graph = written(policy, tmp_path, explain=True)
    whole = graph.explain(rows)
    monkeypatch.setattr(graph, "_rows", 100)
    seen, run = [], graph._session.run

    @dataclass
    class Spy:
        def run(self, wanted, feed):
            seen.append(len(feed["contexts"]))
            return run(wanted, feed)

    monkeypatch.setattr(graph, "_session", Spy())
    for name, values in graph.explain(rows).items():
        np.testing.assert_allclose(values, whole[name], rtol=0, atol=1e-12)
    assert seen == [100] * 10 + [3]
    empty = graph.explain(np.empty((0, 2)))
    assert empty["arm"].shape == (0,)
    assert empty["gap"].shape == (0, 4)


def test_another_runtime_session_needs_nothing_of_ours(tmp_path):
    policy = explored(cg.SmallestGap()).freeze()
    write_onnx(policy, tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(
        tmp_path / "policy.onnx", providers=["CPUExecutionProvider"]
    )
    (entry,), (result,) = session.get_inputs(), session.get_outputs()
    assert (entry.name, entry.type, entry.shape) == ("contexts", "tensor(double)", ["batch", 2])
    assert (result.name, result.type, result.shape) == ("arm", "tensor(int64)", ["batch"])


@dataclass(frozen=True)
class Custom(Kernel):
    def __call__(self, left, right):
        return np.ones((len(left), len(right)))

    def diagonal(self, contexts):
        return np.ones(len(contexts))


@dataclass(frozen=True)
class Changed(cg.Gaussian):
    pass


@pytest.mark.parametrize("recommender", ["mean", "gap"])
def test_costs_are_put_out_as_they_were_told(recommender, tmp_path):
    policy = explored(RECOMMENDERS[recommender], reward="minimize").freeze()
    write_onnx(policy, tmp_path / "p.onnx", explain=True)
    rows = contexts_for(policy, 40)
    found = GraphPolicy(tmp_path / "p.onnx").explain(rows)
    for place, decision in enumerate(map(policy.decide, rows)):
        assert policy.arms[found["arm"][place]] == decision.arm
        for name in ("mean", "std", "lower", "upper", "gap"):
            np.testing.assert_allclose(found[name][place], getattr(decision, name), atol=1e-9)
    header = policy.to_c(tmp_path / "c").header.read_text()
    assert "The learner observed costs: means are minus the expected costs." in header


def test_what_has_no_graph_is_refused_by_name(tmp_path):
    from sklearn.gaussian_process.kernels import RBF

    path = tmp_path / "policy.onnx"
    for kernel, name in [
        (Custom(), "Custom"),
        (cg.Gaussian(1.0) + 2.0 * (Custom() * cg.Linear()), "Custom"),
        (Changed(1.0), "Changed"),
        (cg.SklearnKernel(RBF(1.0)), "SklearnKernel"),
    ]:
        with pytest.raises(ExportError, match=f"kernel {name} cannot be exported to ONNX"):
            write_onnx(explored(cg.SmallestGap(), kernel, steps=8).freeze(), path)
    with pytest.raises(ExportError, match="PosteriorSample"):
        write_onnx(explored(cg.PosteriorSample(), steps=8).freeze(), path)
    narrow = explored(cg.HighestMean(), cg.Gaussian(1e-50), steps=8).freeze()
    with pytest.raises(ExportError, match=r"the bandwidth is 1e-50, which float32 cannot hold"):
        write_onnx(narrow, path, float32=True)
    with pytest.raises(ExportError, match="cannot be saved"):
        write_onnx(explored(cg.HighestMean(), arms=[frozenset()], steps=8).freeze(), path)
    assert not path.exists()


def test_tiny_bandwidths_mean_that_nothing_is_near(tmp_path):
    policy = explored(cg.HighestMean(), cg.Gaussian(1e-25)).freeze()
    rows = contexts_for(policy, 10)
    found = written(policy, tmp_path, explain=True).explain(rows)
    np.testing.assert_allclose(found["mean"], policy.chooser.evidence(rows).belief.mean, atol=1e-12)


def test_a_file_too_large_for_the_format_is_refused(tmp_path, monkeypatch):
    policy = explored(cg.SmallestGap(), steps=40).freeze()
    monkeypatch.setattr("contextgap.export.onnx._LARGEST_FILE", 4 * 10 * 10 * 8 - 1)
    with pytest.raises(ExportError, match="inverse factors"):
        write_onnx(policy, tmp_path / "policy.onnx")
    write_onnx(policy, tmp_path / "policy.onnx", float32=True)


def test_paths_that_cannot_be_written_and_files_of_others(tmp_path):
    policy = explored(cg.HighestMean(), steps=8).freeze()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_onnx(policy, tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_onnx(policy, tmp_path / "none" / "policy.onnx")
    write_onnx(policy, tmp_path / "policy.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["policy.onnx"]
    graph = GraphPolicy(tmp_path / "policy.onnx")
    with pytest.raises(ValueError, match="explain=True"):
        graph.explain(np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"shape \(n, 2\), got \(2,\)"):
        graph.recommend(np.zeros(2))
    model = onnx.load(tmp_path / "policy.onnx")
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "foreign.onnx")
    with pytest.raises(FileFormatError, match="not one that contextgap wrote"):
        GraphPolicy(tmp_path / "foreign.onnx")


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch):
    policy = explored(cg.HighestMean(), steps=8).freeze()
    write_onnx(policy, tmp_path / "policy.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"needs onnx,.*contextgap\[onnx\]"):
        write_onnx(policy, tmp_path / "other.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"needs onnxruntime,.*contextgap\[onnx\]"):
        GraphPolicy(tmp_path / "policy.onnx")


def test_factors_far_above_the_noise_keep_their_digits(tmp_path):
    """onnxruntime rounds a factor to float where it follows a product of matrices."""
    kernel = cg.Gaussian(0.8) + 1e6 / 3 * Constant()  # two arms far below the others
    learner = explored(cg.SmallestGap(), kernel, width=cg.PosteriorWidth(1.0))
    policy = learner.freeze()
    policy.to_onnx(tmp_path / "policy.onnx", explain=True)
    rows = contexts_for(policy, 300)
    found = GraphPolicy(tmp_path / "policy.onnx").explain(rows)["certificate"]
    np.testing.assert_allclose(found, policy.certificate(rows).bound, rtol=0, atol=1e-4)
