"""What notebooks show, and what they complete."""

from html.parser import HTMLParser

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import contextgap as cg

HOSTILE = "<script>alert(1)</script>"


class Cells(HTMLParser):
    """Collects the cells of tables, and all elements there are."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.kinds, self.open = [], set(), []
        self.feed(text)
        assert not self.open, "elements that are not closed"

    def handle_starttag(self, tag, attrs):
        self.kinds.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def learner():
    rng = np.random.default_rng(0)
    contexts, arms = rng.uniform(-1, 1, (30, 1)), rng.choice(["hull", HOSTILE], 30)
    learner = cg.Learner(["hull", HOSTILE], kernel=cg.Gaussian(0.5), width=cg.PosteriorWidth(2))
    return learner.fit(contexts, arms, np.where(arms == "hull", contexts[:, 0], 0.0))


def shown(thing):
    cells = Cells(thing._repr_html_())
    assert cells.kinds <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "b"}
    return cells.rows


def test_everything_that_is_shown_is_a_table_of_what_it_says(learner):
    policy = learner.freeze()
    counts = [[str(arm), str(count)] for arm, count in learner.counts.items()]
    assert shown(learner)[1:] == counts
    assert shown(policy)[1:] == counts
    assert [tuple(row) for row in shown(policy.card)][:8] == policy.card.rows()[:8]
    assert shown(policy)[3:] == shown(policy.card)  # once it was computed
    decision = policy.decide([0.3])
    rows = shown(decision)
    assert [row[0] for row in rows[1:]] == list(decision.arms)
    assert rows[1][1] == f"{decision.mean[0]:.4g}"
    why = policy.explain([0.3])
    assert [row[0] for row in shown(why)[1:6]] == [str(each.place) for each in why.trials]
    bounds = policy.certificate(np.linspace(-1, 1, 9)[:, None])
    assert shown(bounds)[-1] == ["100 %", f"{bounds.bound.max():.4g}"]
    assert shown(policy.certificate(np.empty((0, 1))))[1:] == []
    unknown = cg.Learner(2, kernel=cg.Gaussian(1.0)).freeze(fallback=0)
    assert shown(unknown) == [["arm", "rewards"], ["0", "0"], ["1", "0"]]


def completions(shell, typed):
    with provisionalcompleter():
        found = shell.Completer.completions(typed, len(typed))
        return {each.text.strip("\"'.") for each in found}


def test_labels_and_columns_are_completed(learner):
    shell = InteractiveShell.instance()
    columns = cg.Columns(country="category", hour=cg.Cyclic(24))
    other = cg.Learner(["hull", "boom"], columns=columns)
    other.tell({"country": "at", "hour": 3}, "hull", 0.2)
    shell.user_ns.update(columns=columns, learner=other, policy=learner.freeze(), cg=cg)
    assert {"country", "hour"} <= completions(shell, 'columns["')
    assert {"country", "hour"} <= completions(shell, 'learner.columns["')
    assert {"hull", "boom"} <= completions(shell, 'learner.counts["')
    assert "hull" in completions(shell, 'policy.counts["')
    assert "problems" in completions(shell, "cg.pro")


def test_what_is_completed_is_read_only(learner):
    with pytest.raises(AttributeError, match="'counts' of a Learner cannot be set"):
        learner.counts = {}
    assert "rewards of each arm" in type(learner).counts.__doc__
