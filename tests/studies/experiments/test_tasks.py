"""Keys of finished parts: what makes the same work, and what does not."""

import sys
from types import ModuleType

import pytest

import contextgap as cg
from contextgap.studies.experiments.run import Store, Task, execute

SOURCE = """
from dataclasses import dataclass
from contextgap.methods.explorers import Explorer

@dataclass(frozen=True)
class Mine(Explorer):
    share: float = 0.5
    def pick(self, moment):
        return 0
"""


def doubled(value):
    return {"value": 2 * value}


def key(explorer):
    method = cg.Method(explorer=explorer, recommender=cg.HighestMean())
    return Task(doubled, {"method": method}).key()


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_explorer.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    import own_explorer

    yield own_explorer.Mine
    del sys.modules["own_explorer"]


def test_the_file_that_defines_a_part_counts(own, tmp_path):
    first = key(own())
    assert key(own()) == first != key(own(share=0.25))
    (tmp_path / "own_explorer.py").write_text(SOURCE.replace("return 0", "return 1"))
    assert key(own()) != first


def test_classes_typed_at_a_prompt_never_share_results():
    kinds = []
    for _ in range(2):
        module = ModuleType("typed_at_a_prompt")
        exec(SOURCE, module.__dict__)
        kinds.append(module.Mine)
    assert key(kinds[0]()) == key(kinds[0]())
    assert key(kinds[0]()) != key(kinds[1]())


def test_a_cleared_store_does_everything_again(tmp_path):
    tasks = [Task(doubled, {"value": value}) for value in (1, 2)]
    calls = []
    for clear in (False, False, True):
        store = Store(tmp_path)
        if clear:
            store.clear()
        found = execute(tasks, store=store, progress=lambda done, _: calls.append(done))
        assert [result["value"] for result in found] == [2, 4]
    assert calls == [0, 1, 2, 2, 0, 1, 2]
