"""Files: what is saved comes back bit for bit; anything else is refused and nothing is executed."""

import datetime
import enum
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import kernels as sk

import contextgap as cg
from contextgap.base import files
from contextgap.kernels import Kernel
from contextgap.models import ExactModel

D = 2
GRID = np.random.default_rng(99).normal(size=(15, D))

KERNELS = [
    cg.Gaussian(0.7),
    cg.Gaussian((0.7, 1.1)),
    cg.Matern(0.7, smoothness=0.5),
    cg.Matern((0.7, 1.1), smoothness=1.5),
    cg.Matern(0.7),
    cg.Linear(),
    cg.Polynomial(2, 0.5),
    cg.Periodic((1.0, 2.0), 0.9),
    0.5 * (cg.Gaussian(1.0) + cg.Linear()) * cg.Matern(2.0),
    cg.SklearnKernel(2.0 * sk.RBF([0.5, 1.0]) + sk.RationalQuadratic(1.0, 0.7)),
]
METHODS = [
    *cg.METHODS,
    cg.Method(explorer=cg.explorers.Uniform(random=True), recommender=cg.SmallestGapInHistory(5)),
    cg.Method(explorer=cg.explorers.EpsilonGreedy(0.5), recommender=cg.PosteriorSample()),
]
WIDTHS = [cg.PosteriorWidth(0.8), cg.RidgeWidth(0.3)]


def make(arms=("a", "b", "c"), *, steps=30, waiting=3, **settings):
    """A learner in the middle of its life."""
    settings = {"kernel": cg.Gaussian(0.7), "ridge": 0.05, "seed": 4} | settings
    learner = cg.Learner(arms, **settings)
    rng = np.random.default_rng(5)
    for x in rng.normal(size=(steps, D)):
        learner.tell(x, learner.ask(x), rng.normal())
    if waiting:
        learner.ask(rng.normal(size=(waiting, D)))
    return learner


def journey(learner, steps=40):
    """Everything visible of a learner's further life, with rewards late and out of order."""
    rng = np.random.default_rng(6)
    log, late = [], []
    for x in rng.normal(size=(steps, D)):
        decision = learner.decide(x)
        log.append([decision.arm, *(a.tobytes() for a in (decision.mean, decision.std))])
        arm = learner.ask(x)
        late.append((x, arm))
        log.append([arm, learner.recommend(GRID).tolist(), learner.pending])
        while late and rng.random() < 0.6:
            learner.tell(*late.pop(rng.integers(len(late))), rng.normal())
    batch = rng.normal(size=(5, D))
    log.append(learner.ask(batch).tolist())
    log.append([learner.counts, learner.pending, learner.prior_mean, learner.information_gain])
    log.append(learner.freeze().certificate(GRID).bound.tobytes())
    return log


def saved(thing, path):
    thing.save(path)
    return path


def content(path):
    """What a file says, whatever the time stamps in its zip."""
    with zipfile.ZipFile(path) as container:
        return {name: container.read(name) for name in container.namelist()}


def repack(source, target, changes):
    """Write ``source`` again with some members replaced, or left out if None; CRCs are valid."""
    members = content(source) | changes
    with zipfile.ZipFile(target, "w") as container:
        for name, data in members.items():
            if data is not None:
                container.writestr(name, data)
    return target


def as_npy(array, allow_pickle=False):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=allow_pickle)
    return buffer.getvalue()


def array_in(path, name):
    return np.load(io.BytesIO(content(path)[f"{name}.npy"]))


def header_in(path):
    return json.loads(content(path)["header.json"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def learner_file(folder):
    return saved(make(), folder / "learner.cgap")


@pytest.fixture(scope="module")
def longer():
    return make(steps=50)


@pytest.fixture(scope="module")
def policy_file(folder):
    return saved(make().freeze(), folder / "policy.cgap")


def load_both(path):
    """Load a file as what its name says it is."""
    return (cg.Policy if "policy" in Path(path).name else cg.Learner).load(path)


class TestRoundTrip:
    """What is saved comes back."""

    def check(self, learner, tmp_path, steps=40):
        file = saved(learner, tmp_path / "l.cgap")
        loaded = cg.Learner.load(file)
        assert content(saved(loaded, tmp_path / "again.cgap")) == content(file)
        assert repr(loaded) == repr(learner)
        assert loaded.arms == learner.arms
        assert loaded.kernel.describe() == learner.kernel.describe()
        assert (loaded.method, loaded.width) == (learner.method, learner.width)
        if sum(learner.counts.values()):
            self.check_policy(learner.freeze(), tmp_path)
        assert journey(loaded, steps) == journey(learner, steps)

    def check_policy(self, policy, tmp_path):
        file = saved(policy, tmp_path / "p.cgap")
        loaded = cg.Policy.load(file)
        assert content(saved(loaded, tmp_path / "p-again.cgap")) == content(file)
        assert loaded.recommend(GRID).tolist() == policy.recommend(GRID).tolist()
        one, other = loaded.certificate(GRID), policy.certificate(GRID)
        assert one.bound.tobytes() == other.bound.tobytes()
        assert one.probability == other.probability
        for x in GRID[:3]:
            one, other = loaded.decide(x), policy.decide(x)
            assert (one.arm, one.leader, one.reason) == (other.arm, other.leader, other.reason)
            assert one.gap.tobytes() == other.gap.tobytes()
        names = ("arms", "method", "width", "ridge", "prior_mean", "counts", "columns", "dimension")
        for name in names:
            assert getattr(loaded, name) == getattr(policy, name)

    @pytest.mark.parametrize(("width", "waiting"), [(WIDTHS[0], 0), (WIDTHS[1], 4)], ids=str)
    @pytest.mark.parametrize("method", METHODS, ids=str)
    def test_every_method_and_width(self, tmp_path, method, width, waiting):
        self.check(make(method=method, width=width, waiting=waiting), tmp_path)

    @pytest.mark.parametrize("kernel", KERNELS, ids=str)
    def test_every_kernel(self, tmp_path, kernel):
        self.check(make(kernel=kernel, prior_mean="auto"), tmp_path)

    @pytest.mark.parametrize("prior_mean", [0.0, -2.5, "auto"])
    @pytest.mark.parametrize("burn_in", [0, 20])
    def test_every_setting(self, tmp_path, prior_mean, burn_in):
        self.check(make(prior_mean=prior_mean, burn_in=burn_in, ridge=1e-6, seed=None), tmp_path)

    @pytest.mark.filterwarnings("ignore:there is no reward yet")
    def test_a_fresh_learner(self, tmp_path):
        self.check(make(steps=0, waiting=0), tmp_path)

    @pytest.mark.filterwarnings("ignore:there is no reward yet")
    def test_only_questions_so_far(self, tmp_path):
        self.check(make(steps=0, waiting=5), tmp_path)

    @pytest.mark.parametrize("method", ["contextual-gap", "kernel-ts"])
    def test_more_than_one_panel_of_the_factor(self, tmp_path, method):
        learner = make(("a", "b"), method=method)
        rng = np.random.default_rng(8)
        logged = rng.normal(size=(290, D))
        learner.fit(logged, ["a"] * 145 + ["b"] * 145, rng.normal(size=290))
        learner.ask(rng.normal(size=(9, D)))
        self.check(learner, tmp_path, steps=30)

    def test_between_question_and_answer(self, tmp_path):
        learner = make(waiting=0)
        learner.ask(GRID[0])
        loaded = cg.Learner.load(saved(learner, tmp_path / "l.cgap"))
        for one in (learner, loaded):
            one.tell(GRID[0], learner.arms[0], 0.3)
        assert journey(loaded, 20) == journey(learner, 20)

    def test_after_removed_and_added_arms(self, tmp_path):
        learner = make(method="kernel-ts", burn_in=2)
        learner.remove_arm("b")
        learner.add_arm("d")
        learner.tell(GRID[0], "b", 0.1)
        self.check(learner, tmp_path)
        loaded = cg.Learner.load(tmp_path / "l.cgap")
        assert loaded.arms == ("a", "c", "d")
        with pytest.raises(ValueError, match="'b' was removed"):
            loaded.add_arm("b")
        with pytest.raises(ValueError, match="'b' was removed already"):
            loaded.remove_arm("b")

    def test_column_names(self, tmp_path):
        frame = pd.DataFrame(GRID, columns=["x", "température"])
        learner = make(steps=0, waiting=0).fit(frame, ["a", "b", "c"] * 5, np.arange(15.0))
        self.check(learner, tmp_path)
        for loaded in (cg.Learner.load(tmp_path / "l.cgap"), cg.Policy.load(tmp_path / "p.cgap")):
            swapped = frame[["température", "x"]]
            assert loaded.recommend(swapped).tolist() == loaded.recommend(GRID).tolist()
            with pytest.raises(ValueError, match="lack the column 'température'"):
                loaded.recommend(frame[["x"]])

    LABELS = (
        ("plain", ["text", 7, -0.5, True, None]),
        ("ints", [3, 1, 2**40]),
        ("huge ints", [2**70, -(2**70), 0]),
        ("floats", [0.1, 1e-300, 1e300, -1e300]),
        ("odd text", ["", "tuple", "ü€😀", 'a"b\\c\n', "\ud800"]),
        ("tuples", [(1, 2), (3, 4)]),
        ("nested tuples", [(), ("a", (1, None)), ((),), "(,)"]),
        ("numpy", [np.int64(3), np.float32(0.1), np.str_("x"), np.float64(0.3), np.int8(-1)]),
        ("numpy bool", [np.bool_(True), np.bool_(False)]),
        ("numpy in tuples", [(np.int64(3), np.str_("x")), (np.float64(0.5),)]),
        ("array", np.array(["p", "q"])),
    )

    @pytest.mark.parametrize("labels", [x for _, x in LABELS], ids=[name for name, _ in LABELS])
    def test_labels_of_every_kind(self, tmp_path, labels):
        learner = make(labels)
        self.check(learner, tmp_path, steps=20)
        arms = cg.Learner.load(tmp_path / "l.cgap").arms
        assert [hash(arm) for arm in arms] == [hash(label) for label in labels]
        for arm, label in zip(arms, labels, strict=True):
            plain = label.item() if isinstance(label, np.generic) else label
            assert type(arm) is type(plain)

    def test_path_kinds(self, tmp_path):
        learner = make()
        for path in (tmp_path / "one.cgap", str(tmp_path / "two.cgap")):
            learner.save(path)
            assert cg.Learner.load(path).arms == learner.arms
        assert content(tmp_path / "one.cgap") == content(tmp_path / "two.cgap")

    def test_saving_changes_nothing(self, tmp_path):
        learner, twin = make(method="kernel-ts"), make(method="kernel-ts")
        learner.save(tmp_path / "l.cgap")
        learner.freeze().save(tmp_path / "p.cgap")
        assert journey(learner, 20) == journey(twin, 20)

    def test_a_learner_file_is_a_zip_of_json_and_plain_arrays(self, learner_file):
        header = header_in(learner_file)
        assert header["format"] == "contextgap"
        assert header["version"] == 1
        assert header["kind"] == "learner"
        assert all(array_in(learner_file, name).dtype.kind in "fi" for name in ("z0", "sequence"))


class TestAtomic:
    """A save that fails leaves the old file whole and nothing beside it."""

    PLACES = (
        pytest.param(zipfile.ZipFile, "writestr", 0, id="header"),
        pytest.param(files.npy, "write_array", 0, id="array"),
        pytest.param(files.npy, "write_array", 3, id="later array"),
        pytest.param(os, "fsync", 0, id="sync"),
        pytest.param(os, "chmod", 0, id="permissions"),
        pytest.param(os, "replace", 0, id="rename"),
    )

    @pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), MemoryError()])
    @pytest.mark.parametrize(("owner", "name", "after"), PLACES)
    def test_failure_while_writing(
        self, learner_file, longer, tmp_path, monkeypatch, owner, name, after, error
    ):
        path = tmp_path / "l.cgap"
        before = learner_file.read_bytes()
        path.write_bytes(before)
        real, calls = getattr(owner, name), itertools.count()

        def failing(*args, **kwargs):
            if next(calls) < after:
                return real(*args, **kwargs)
            raise error

        monkeypatch.setattr(owner, name, failing)
        with pytest.raises(type(error)):
            longer.save(path)
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["l.cgap"]

    def test_failure_without_an_old_file(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            make().save(tmp_path / "l.cgap")
        assert os.listdir(tmp_path) == []

    KILLED = """
import sys
import numpy as np
import contextgap as cg
learner = cg.Learner(2, kernel=cg.Gaussian(1.0), ridge=0.1, seed=0)
rng = np.random.default_rng(0)
learner.fit(rng.normal(size=(600, 2)), [0, 1] * 300, rng.normal(size=600))
for number in range(10**9):
    learner.remove_arm(learner.arms[-1])
    learner.add_arm(number + 2)
    learner.save(sys.argv[1])
    print(number, flush=True)
"""

    @pytest.mark.parametrize("milliseconds", [0, pytest.param(3, marks=pytest.mark.slow), 7])
    def test_killed_while_saving_over_a_good_file(self, tmp_path, milliseconds):
        path = tmp_path / "l.cgap"
        command = [sys.executable, "-c", self.KILLED, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            numbers = [int(child.stdout.readline()) for _ in range(5)]
            assert child.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(milliseconds / 1000)
            child.send_signal(signal.SIGKILL)
            numbers += map(int, child.stdout.read().split())
        assert child.returncode == -signal.SIGKILL
        loaded = cg.Learner.load(path)
        # The last save that was announced, or the one that was under way.
        assert loaded.arms[-1] - 2 in (numbers[-1], numbers[-1] + 1)
        assert loaded.counts[0] == 300
        assert loaded.recommend(GRID).shape == (15,)

    def test_the_new_file_has_ordinary_permissions(self, tmp_path):
        path = saved(make(), tmp_path / "l.cgap")
        (tmp_path / "plain").touch()
        assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_no_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            make().save(tmp_path / "missing" / "l.cgap")


class Colour(enum.Enum):
    """Labels that JSON does not know."""

    RED = 1


class Undescribed(Kernel):
    """A kernel that says nothing about itself."""

    def __call__(self, left, right):
        return np.asarray(left @ right.T)

    def diagonal(self, contexts):
        return np.asarray((contexts**2).sum(axis=1))


@dataclass(frozen=True)
class Holding(Undescribed):
    """A user's kernel of plain values, if the values are plain."""

    value: object


class TestCannotBeSaved:
    """Labels and kernels that do not fit in a file."""

    @pytest.mark.parametrize(
        "label",
        [
            frozenset({1}),
            b"x",
            Colour.RED,
            datetime.date(2020, 1, 1),
            1j,
            ("a", frozenset()),
            object,
        ],
        ids=str,
    )
    def test_labels(self, tmp_path, label):
        name = "frozenset" if isinstance(label, tuple) else type(label).__name__
        self.check(tmp_path, make(["a", label]), f"the label .* of type {name} cannot be saved")

    @pytest.mark.parametrize(
        ("kernel", "says"),
        [
            (Undescribed(), "Undescribed cannot be described"),
            (2 * Undescribed() + cg.Linear(), "Undescribed cannot be described"),
            (Holding(1 + 2j), r"Holding\.value cannot be described"),
            (Holding((1, object)), r"Holding\.value cannot be described"),
        ],
        ids=["no dataclass", "inside a sum", "complex field", "class in a tuple"],
    )
    def test_kernels(self, tmp_path, kernel, says):
        self.check(tmp_path, make(kernel=kernel), says)

    def check(self, tmp_path, learner, says):
        paths = saved(make(), tmp_path / "l.cgap"), saved(make().freeze(), tmp_path / "p.cgap")
        before = [path.read_bytes() for path in paths]
        for thing, path in zip((learner, learner.freeze()), paths, strict=True):
            with pytest.raises(TypeError, match=says):
                thing.save(path)
        assert [path.read_bytes() for path in paths] == before
        assert len(os.listdir(tmp_path)) == 2

    def test_a_users_kernel_of_plain_values_can(self, tmp_path):
        kernel = Holding((1.0, "x", None)) + 2 * Holding(cg.Gaussian(1.0))
        loaded = cg.Learner.load(saved(make(kernel=kernel), tmp_path / "l.cgap"))
        assert loaded.kernel == kernel
        assert journey(loaded, 20) == journey(make(kernel=kernel), 20)


def refused(load, path, says=None):
    """Loading raises FileFormatError, which names the file."""
    with pytest.raises(cg.FileFormatError, match=says) as caught:
        load(path)
    assert isinstance(caught.value, ValueError)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) > len(str(path)) + 10


def harmless_or_refused(path, original):
    """Whether a damaged file loads; if so, it must say exactly what the original says."""
    try:
        load_both(path)
    except cg.FileFormatError:
        return False
    assert content(path) == original
    return True


class TestDamaged:
    """Files that were cut or altered on the way."""

    @pytest.mark.parametrize("kind", ["learner", "policy"])
    def test_truncated(self, folder, learner_file, policy_file, kind):
        whole = {"learner": learner_file, "policy": policy_file}[kind].read_bytes()
        path = folder / f"cut-{kind}.cgap"
        lengths = {
            *range(0, 200, 7),
            *range(0, len(whole), 61),
            *range(len(whole) - 60, len(whole)),
        }
        for length in sorted(lengths):
            path.write_bytes(whole[:length])
            refused(load_both, path)

    def flip(self, folder, source, places):
        whole, original = source.read_bytes(), content(source)
        path = folder / f"flipped-{source.name}"
        unnoticed = []
        for place, mask in places(whole):
            altered = bytearray(whole)
            altered[place] ^= mask
            path.write_bytes(altered)
            if harmless_or_refused(path, original):
                unnoticed.append(place)
        return whole, unnoticed

    @pytest.mark.parametrize("kind", ["learner", "policy"])
    def test_every_few_bytes_flipped(self, folder, learner_file, policy_file, kind):
        source = {"learner": learner_file, "policy": policy_file}[kind]
        masks = itertools.cycle([0xFF, 0x01, 0x80, 0x10])
        whole, unnoticed = self.flip(
            folder, source, lambda whole: zip(range(0, len(whole), 11), masks, strict=False)
        )
        for data in content(source).values():  # only zip's own time stamps and the like may differ
            start = whole.index(data)
            assert not [place for place in unnoticed if start <= place < start + len(data)]

    @pytest.mark.slow
    def test_every_byte_of_the_directory_flipped(self, folder, policy_file):
        masks = (0x01, 0x02, 0x04, 0x08, 0x0C, 0x0E, 0x40, 0x80, 0xFF)  # 0x0C: bzip2, 0x0E: LZMA

        def places(whole):
            start = whole.find(b"PK\x01\x02")
            first = range(start, start + 66)
            return itertools.product(
                [*range(60), *first, *range(len(whole) - 22, len(whole))], masks
            )

        _, unnoticed = self.flip(folder, policy_file, places)
        assert len(set(unnoticed)) < 120

    def test_blocks_zeroed_swapped_or_repeated(self, folder, learner_file):
        whole, original = learner_file.read_bytes(), content(learner_file)
        path = folder / "learner-blocks.cgap"
        for start in range(0, len(whole) - 512, 512):
            block, after = whole[start : start + 256], whole[start + 256 : start + 512]
            for patch in (bytes(256) + after, after + block, block + block):
                path.write_bytes(whole[:start] + patch + whole[start + 512 :])
                if path.read_bytes() != whole:
                    harmless_or_refused(path, original)

    @pytest.mark.parametrize(
        "compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    )
    def test_damaged_compressed_members(self, folder, learner_file, compression):
        path = folder / "learner-compressed.cgap"
        with zipfile.ZipFile(path, "w", compression) as container:
            for name, data in content(learner_file).items():
                container.writestr(name, data)
        original, whole = content(path), path.read_bytes()
        for place in range(30, len(whole) - 30, len(whole) // 150):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
            harmless_or_refused(path, original)
        path.write_bytes(whole)
        refused(load_both, path, "compressed")


def plain_npz(path):
    np.savez(path, contexts=np.zeros((2, 2)))
    return path


def other_zip(path):
    with zipfile.ZipFile(path, "w") as container:
        container.writestr("hello.txt", "hello")
    return path


def a_folder(path):
    path.mkdir()
    return path


def header_only(text):
    def write(path):
        with zipfile.ZipFile(path, "w") as container:
            container.writestr("header.json", text)
        return path

    return write


def bytes_of(data):
    def write(path):
        path.write_bytes(data)
        return path

    return write


FOREIGN = {
    "empty": bytes_of(b""),
    "text": bytes_of(b"speed,heat\n1,2\n" * 100),
    "npy": bytes_of(as_npy(np.zeros(3))),
    "only the end of a zip": bytes_of(b"PK\x05\x06" + bytes(18)),
    "zeros": bytes_of(bytes(5000)),
    "npz": plain_npz,
    "zip": other_zip,
    "folder": a_folder,
    "no JSON": header_only("{"),
    "no object": header_only("[1]"),
    "other object": header_only('{"format": "other", "version": 1, "kind": "learner"}'),
    "not UTF-8": header_only(b"\xff\xfe{\x80"),
    "too deep": header_only("[" * 100_000),
    "nothing but a header": header_only(
        '{"format": "contextgap", "version": 1, "kind": "learner"}'
    ),
}


@pytest.mark.parametrize("write", FOREIGN.values(), ids=FOREIGN.keys())
@pytest.mark.parametrize("kind", [cg.Learner, cg.Policy])
def test_foreign_files(tmp_path, write, kind):
    path = write(tmp_path / "foreign.npz")
    refused(kind.load, path)
    refused(kind.load, path)  # whatever was opened was closed again


def test_a_missing_file_is_simply_missing(tmp_path):
    for kind in (cg.Learner, cg.Policy):
        with pytest.raises(FileNotFoundError):
            kind.load(tmp_path / "missing.cgap")


def test_the_wrong_kind(learner_file, policy_file):
    refused(cg.Policy.load, learner_file, r"holds a learner, not a policy; use Learner\.load")
    refused(cg.Learner.load, policy_file, r"holds a policy, not a learner; use Policy\.load")


@pytest.mark.parametrize("version", [3, 0, None, "1", [1], 1.5])
def test_other_versions(folder, learner_file, version):
    header = header_in(learner_file) | {"version": version}
    path = repack(learner_file, folder / "v.cgap", {"header.json": json.dumps(header)})
    refused(cg.Learner.load, path, r"has format version .*this release reads 1 and 2: load it with")


EXPLODED = []


def explode(what):
    EXPLODED.append(what)


class Bomb:
    """Something whose unpickling would be noticed."""

    def __reduce__(self):
        return explode, ("boom",)


@pytest.mark.parametrize("name", ["contexts", "z0", "pending", "surplus"])
@pytest.mark.parametrize("kind", ["learner", "policy"])
def test_nothing_is_executed(folder, learner_file, policy_file, kind, name):
    source = {"learner": learner_file, "policy": policy_file}[kind]
    bomb = np.empty(1, dtype=object)
    bomb[0] = Bomb()
    data = as_npy(bomb, allow_pickle=True)
    refused(load_both, repack(source, folder / f"{kind}-bomb.cgap", {f"{name}.npy": data}))
    raw = data[data.index(b"\n") + 1 :]
    refused(load_both, repack(source, folder / f"{kind}-bomb.cgap", {f"{name}.npy": raw}))
    assert EXPLODED == []
    np.load(io.BytesIO(data), allow_pickle=True)  # which shows that the bomb is live
    assert EXPLODED.pop() == "boom"


def nested(depth):
    kernel = {"type": "Linear"}
    for _ in range(depth):
        kernel = {"type": "Scaled", "kernel": kernel, "factor": 1.0}
    return kernel


NAN, INF = float("nan"), float("inf")
HEADERS = {
    "ridge": [-1.0, 0.0, NAN, INF, "0.1", None, [0.05], 10**400, True],
    "burn_in": [-1, 1.5, "1", None, INF, NAN, True],
    "prior_mean": ["mean", None, NAN, INF, [0.0], {}, True],
    "arms": [[], ["a", "b"], ["a", "b", "c", "d"], ["a", "a", "c"], "abc", None, 3, {"a": 1}]
    + [["a", "b", x] for x in (["c"], {"c": 1}, {"tuple": 3}, {"tuple": "xy"}, NAN)],
    "active": [
        [],
        [0, 0, 1],
        [0, 1, 3],
        [-1, 0, 1],
        [0.5, 1, 2],
        "012",
        [0, None],
        3,
        None,
        [[0]],
        ["0", "1", "2"],
        [True, 2],
    ],
    "dimension": [None, 3, 0, -2, "2", 2.5, [2]],
    "columns": [
        ["x"],
        ["x", "y", "z"],
        ["x", "x"],
        "xy",
        [1, 2],
        2,
        [],
        [None, "y"],
        {"x": 1, "y": 2},
    ],
    "kernel": [
        None,
        "Gaussian",
        {},
        [],
        {"type": "Gaussian"},
        {"type": "Gaussien", "bandwidth": 1.0},
        {"type": "Gaussian", "bandwidth": 0.0},
        {"type": "Gaussian", "bandwidth": NAN},
        {"type": "Gaussian", "bandwidth": [1.0, 2.0, 3.0]},
        {"type": "Gaussian", "bandwidth": 1.0, "colour": "red"},
        {"type": "Gaussian", "bandwidth": {"type": "Linear"}},
        {"type": "PosteriorWidth", "scale": 1.0},
        {"type": "Kernel"},
        {"type": "Sum", "left": {"type": "Linear"}, "right": None},
        {"type": "SklearnKernel"},
        {"type": "SklearnKernel", "kernel": {"class": "Hyperparameter"}},
        {"type": "SklearnKernel", "kernel": {"class": "RBF", "length_scale": [1.0, 2.0, 3.0]}},
        {"type": "SklearnKernel", "kernel": {"class": "RBF", "colour": "red"}},
        {"type": "SklearnKernel", "kernel": {"no": "class"}},
        nested(600),
    ],
    "method": [
        None,
        "contextual-gap",
        {"type": "Linear"},
        {"type": "Method"},
        {"type": "Method", "explorer": {"type": "Uniform"}, "recommender": {"type": "Uniform"}},
    ],
    "width": [
        None,
        1.0,
        {"type": "Linear"},
        {"type": "PosteriorWidth", "scale": -1.0},
        {"type": "?"},
    ],
}
SEEDS = [-1, 2**64, 1.5, "1", None, INF, True]
LEARNER_HEADERS = HEADERS | {
    "policy_seed": SEEDS,
    "random_state": [
        None,
        {},
        7,
        np.random.MT19937(0).state["bit_generator"],
        {"bit_generator": "MT19937", "state": {"state": 1, "inc": 1}},
        {
            "bit_generator": "PCG64",
            "state": {"state": -1, "inc": 1},
            "has_uint32": 0,
            "uinteger": 0,
        },
        {"bit_generator": "PCG64", "state": {"state": 1, "inc": 2**200}}
        | {"has_uint32": 0, "uinteger": 0},
        {"bit_generator": "PCG64", "state": {"state": 1, "inc": 1}, "has_uint32": 0},
        {
            "bit_generator": "PCG64",
            "state": {"state": 1, "inc": 1},
            "has_uint32": 0,
            "uinteger": INF,
        },
    ],
    "pending": [
        [],
        [0],
        [0, 1, 2, 0],
        [0, 1, 3],
        [0, 1, -1],
        [0, 1, 0.5],
        [0, 1, "2"],
        None,
        3,
        [0, 1, None],
    ],
}
POLICY_HEADERS = HEADERS | {"seed": SEEDS}


def edits(headers):
    return [
        pytest.param(key, value, id=f"{key}: {str(value)[:40]}")
        for key, values in headers.items()
        for value in values
    ]


def check_header_edit(source, path, key, value):
    header = header_in(source) | {key: value}
    refused(load_both, repack(source, path, {"header.json": json.dumps(header)}))


@pytest.mark.parametrize(("key", "value"), edits(LEARNER_HEADERS))
def test_learner_header_edited_by_hand(folder, learner_file, key, value):
    check_header_edit(learner_file, folder / "learner-edited.cgap", key, value)


@pytest.mark.parametrize(("key", "value"), edits(POLICY_HEADERS))
def test_policy_header_edited_by_hand(folder, policy_file, key, value):
    check_header_edit(policy_file, folder / "policy-edited.cgap", key, value)


@pytest.mark.parametrize(
    ("key", "value"), edits({"dimension": ["2", 0, -1, 2.5], "columns": [[], ["x", "x"]]})
)
def test_header_of_an_empty_learner_edited_by_hand(folder, key, value):
    source = saved(make(steps=0, waiting=0), folder / "learner-empty.cgap")
    check_header_edit(source, folder / "learner-empty-edited.cgap", key, value)


@pytest.mark.parametrize("kind", ["learner", "policy"])
def test_missing_members_and_keys(folder, learner_file, policy_file, kind):
    source = {"learner": learner_file, "policy": policy_file}[kind]
    path = folder / f"{kind}-lacking.cgap"
    for name in content(source):
        refused(load_both, repack(source, path, {name: None}))
    header = header_in(source)
    for key in header:
        # Files of version 0.1.0 have none of these.
        later = ("card", "tuning", "model", "alone", "features", "points", "growth", "provenance")
        if key in later:
            continue
        shorter = {k: v for k, v in header.items() if k != key}
        refused(load_both, repack(source, path, {"header.json": json.dumps(shorter)}))


def spoil_first(value):
    def change(array):
        spoilt = array.copy()
        spoilt.flat[0] = value
        return spoilt

    return change


CHANGES = {
    "NaN": spoil_first(np.nan),
    "infinity": spoil_first(-np.inf),
    "one row more": lambda a: np.concatenate([a, a[-1:]]),
    "one row less": lambda a: a[:-1],
    "none": lambda a: a[:0],
    "one axis more": lambda a: a[None],
    "flat": np.ravel,
    "scalar": lambda a: a.flat[0],
    "float32": lambda a: a.astype(np.float32),
    "integers": lambda a: a.astype(np.int64),
    "complex": lambda a: a.astype(complex),
    "text": lambda a: a.astype(str),
    "big-endian": lambda a: a.astype(">f8"),
    "record": lambda a: np.zeros(a.shape, dtype=[("x", "f8")]),
}
FLOATS = ["contexts", "rewards", "factor0", "z1", "w2", "pending"]
ARRAY_EDITS = [
    *(
        (name, label, change)
        for name in FLOATS
        for label, change in CHANGES.items()
        if not (label == "flat" and name not in ("contexts", "pending"))
    ),
    ("contexts", "another dimension", lambda a: np.hstack([a, a])),
    ("contexts", "no dimension", lambda a: a[:, :0]),
    ("pending", "another dimension", lambda a: np.hstack([a, a])),
    ("factor0", "negative pivot", spoil_first(-1.0)),
    ("factor0", "zero pivot", spoil_first(0.0)),
    ("sequence", "an arm too many", spoil_first(3)),
    ("sequence", "negative", spoil_first(-1)),
    ("sequence", "floats", lambda a: a.astype(float)),
    ("sequence", "bool", lambda a: a.astype(bool)),
    ("sequence", "another arm", lambda a: np.roll(a, 1) * 0),
    ("sequence", "longer", lambda a: np.concatenate([a, a])),
]


@pytest.mark.parametrize("kind", ["learner", "policy"])
@pytest.mark.parametrize(
    ("name", "change"),
    [pytest.param(name, change, id=f"{name}: {label}") for name, label, change in ARRAY_EDITS],
)
def test_arrays_edited_by_hand(folder, learner_file, policy_file, kind, name, change):
    if name == "pending" and kind == "policy":
        assert "pending.npy" not in content(policy_file)
        return
    source = {"learner": learner_file, "policy": policy_file}[kind]
    with np.errstate(invalid="ignore"):
        data = as_npy(change(array_in(source, name)))
    refused(load_both, repack(source, folder / f"{kind}-array.cgap", {f"{name}.npy": data}))


def with_npy_header(text, body=bytes(64)):
    text = text.encode("latin1")
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


NPY = {
    "empty": b"",
    "cut in the magic": b"\x93NUM",
    "cut in the header": as_npy(np.zeros(9))[:40],
    "cut in the data": as_npy(np.zeros(9))[:-4],
    "more than it says": as_npy(np.zeros(30)) + b"x",
    "another version": b"\x93NUMPY\x09\x00" + as_npy(np.zeros(30))[8:],
    "unclosed": with_npy_header("((("),
    "indented": with_npy_header("  {\n 'descr'"),
    "no dictionary": with_npy_header("[1, 2]\n"),
    "code": with_npy_header("__import__('os').abort()\n"),
    "bad dtype": with_npy_header("{'descr': 'zz', 'fortran_order': False, 'shape': (3,)}\n"),
    "dtype of another kind": with_npy_header(
        "{'descr': 3, 'fortran_order': False, 'shape': (3,)}\n"
    ),
    "negative": with_npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}\n"),
    "gigantic": with_npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**15,)}\n"),
    "terabytes": with_npy_header(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (9000000000000,)}\n"
    ),
    "beyond integers": with_npy_header(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (9000000000000000000000,)}\n"
    ),
    "wraps around": with_npy_header(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}\n"
    ),
    "empty elements": with_npy_header("{'descr': '|V0', 'fortran_order': False, 'shape': (30,)}\n"),
    "long header": with_npy_header("{" + " " * 20_000 + "}\n"),
}


@pytest.mark.parametrize("data", NPY.values(), ids=NPY.keys())
def test_malformed_arrays(folder, learner_file, data):
    path = repack(learner_file, folder / "learner-npy.cgap", {"rewards.npy": data})
    refused(cg.Learner.load, path)


def test_fortran_order_is_read_right(folder, learner_file):
    contexts = np.asfortranarray(array_in(learner_file, "contexts"))
    path = repack(learner_file, folder / "learner-f.cgap", {"contexts.npy": as_npy(contexts)})
    assert journey(cg.Learner.load(path), 10) == journey(cg.Learner.load(learner_file), 10)


@pytest.mark.parametrize("references", [None, ((0.1, 0.2), (0.7, -0.4))])
def test_a_knowledge_gradient_goes_on_to_the_last_bit(references, tmp_path):
    explorer = cg.explorers.KnowledgeGradient(most=20, references=references)
    method = cg.Method(explorer=explorer, recommender=cg.HighestMean())
    learner = cg.Learner(3, kernel=cg.Gaussian(0.5), ridge=1e-3, method=method, seed=0)
    contexts = np.random.default_rng(2).uniform(-1, 1, (120, 2))
    for step, x in enumerate(contexts):
        if step == 60:
            learner.ask(contexts[step : step + 3])  # picks may be pending
            learner.save(tmp_path / "l.cgap")
            twin = cg.Learner.load(tmp_path / "l.cgap")
        both = [learner] if step < 60 else [learner, twin]
        arms = [each.ask(x) for each in both]
        for each in both:
            each.tell(x, arms[0], float(np.sin(3 * x[0] * (arms[0] + 1))))
        gains = [
            explorer.gain(each._view(each.state.schema, each.state.pending).moment(x))
            for each in both
        ]
        assert arms[0] == arms[-1]
        np.testing.assert_array_equal(gains[0], gains[-1])


def test_a_part_defined_elsewhere_is_named_with_its_module(tmp_path):
    source = saved(make(), tmp_path / "l.cgap")
    text = json.dumps(header_in(source)).replace('"Gaussian"', '"their.kernels.Bent"')
    path = repack(source, tmp_path / "theirs.cgap", {"header.json": text})
    with pytest.raises(cg.FileFormatError, match=r"theirs\.cgap.*import their\.kernels") as caught:
        cg.Learner.load(path)
    assert "damaged" not in str(caught.value)


def zipped(target, members, **how):
    with zipfile.ZipFile(target, "w", **how) as container:
        for name, data in members.items():
            container.writestr(name, data)
    return target


def test_compressed_unknown_and_absurd_members_are_refused_before_they_are_read(tmp_path):
    source = saved(make(), tmp_path / "l.cgap")
    members = content(source)
    path = zipped(tmp_path / "small.cgap", members, compression=zipfile.ZIP_DEFLATED)
    refused(load_both, path, "compressed")
    path = zipped(tmp_path / "more.cgap", members | {"extra.txt": b"hello"})
    refused(load_both, path, "unknown member 'extra.txt'")
    buffer = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**10)}
    np.lib.format.write_array_header_1_0(buffer, about)
    path = zipped(
        tmp_path / "huge.cgap", members | {"rewards.npy": buffer.getvalue() + b"12345678"}
    )
    refused(load_both, path, "holds 8 bytes")


def test_names_that_come_twice_and_members_that_share_bytes_are_refused(tmp_path):
    source = saved(make(), tmp_path / "l.cgap")
    members = content(source)
    header = members["header.json"].replace(b"{", b'{"kind": "learner", ', 1)
    path = zipped(tmp_path / "header.cgap", members | {"header.json": header})
    refused(load_both, path, "the name 'kind' is there twice")
    path = tmp_path / "twice.cgap"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rewards.npy", members["rewards.npy"])
        archive.start_dir = archive.fp.tell()
        entry = archive.infolist()[0]
        archive.filelist += [entry] * 400  # as many directory entries for one member
    refused(load_both, path, "its member 'rewards.npy' is there twice")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", bytes(10_000))
        entry, archive.start_dir = archive.infolist()[0], archive.fp.tell()
        for name in "bc":
            other = zipfile.ZipInfo(f"{name}.npy")
            other.CRC, other.header_offset = entry.CRC, entry.header_offset
            other.compress_size = other.file_size = entry.file_size
            archive.filelist.append(other)
    refused(load_both, path, "are larger than the whole file")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_devices_are_refused_at_once(path):
    refused(load_both, path, "is not a regular file")


@pytest.mark.parametrize("where", ["_read_array", "restore"])
def test_too_little_memory_is_said_as_such(tmp_path, monkeypatch, where):
    path = saved(make(), tmp_path / "l.cgap")

    def full(*_):
        raise MemoryError("Unable to allocate")

    owner = files if where == "_read_array" else ExactModel
    monkeypatch.setattr(owner, where, full)
    with pytest.raises(MemoryError, match=r"l\.cgap takes \d+ MB of memory"):
        cg.Learner.load(path)


def test_a_file_of_text_is_refused(tmp_path):
    policy = cg.Learner(2, kernel=cg.Gaussian(1.0)).fit([[0.0], [1.0]], [0, 1], [0, 1]).freeze()
    with pytest.raises(TypeError, match="a binary file that is open"):
        policy.save(io.StringIO())
    with (tmp_path / "p.cgap").open("w") as file, pytest.raises(TypeError, match="binary"):
        policy.save(file)
