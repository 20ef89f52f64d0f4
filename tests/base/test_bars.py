import io
import sys
import types

import pytest

import contextgap as cg
from contextgap.base import display


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(display, "perf_counter", lambda: now[0])
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    return now


def test_terminals_see_one_line_that_changes(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = cg.ProgressBar("exploring")
    for done in range(5):
        bar(done, 4)
        clock[0] += 30
    lines = sys.stderr.getvalue().split("\r\x1b[K")[1:]
    assert lines[0] == "exploring " + "░" * 20 + " 0/4 0:00"
    assert lines[1] == "exploring " + "█" * 5 + "░" * 15 + " 1/4 0:30, 1:30 left"
    assert lines[4] == "exploring " + "█" * 20 + " 4/4 2:00\n"


def test_bars_are_drawn_ten_times_a_second_and_at_the_end(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = cg.ProgressBar()
    for done in range(1001):
        bar(done, 1000)
        clock[0] += 0.001
    assert 10 <= sys.stderr.getvalue().count("\r") <= 12
    assert "1000/1000" in sys.stderr.getvalue()
    bar(0, 7)
    assert sys.stderr.getvalue().endswith("0/7 0:00")


def test_a_bar_is_never_more_than_full(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    cg.ProgressBar("adding up")(5, 3)
    assert sys.stderr.getvalue() == "\r\x1b[Kadding up " + "█" * 20 + " 5/3 0:00\n"


def test_a_bar_goes_where_phases_are_named(clock, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stderr", Terminal())
    rows = "".join(f"{place / 60},{'ab'[place % 2]},{place % 3}\n" for place in range(60))
    (tmp_path / "log.csv").write_text("x,arm,reward\n" + rows)
    phases = []
    for progress in (cg.ProgressBar, cg.ProgressBar("tonight")):
        sys.stderr = Terminal()
        cg.learn_from(tmp_path / "log.csv", arm="arm", reward="reward", progress=progress)
        drawn = sys.stderr.getvalue().split("\r\x1b[K")[1:]
        phases.append([line.partition(" █")[0] for line in drawn if line.endswith("\n")])
    assert phases[0]
    assert phases[1] == [f"tonight: {phase}" for phase in phases[0]]


def test_logs_and_pipes_see_nothing(clock, capsys):
    bar = cg.ProgressBar()
    bar(0, 0)
    bar(1, 1)
    assert capsys.readouterr() == ("", "")


def test_notebooks_see_one_output_that_changes(clock, monkeypatch):
    shown = []

    class Handle:
        def update(self, data, raw):
            shown[-1].append(data["text/plain"])

    def display(data, raw, display_id):
        shown.append([data["text/plain"]])
        return Handle()

    shell = types.SimpleNamespace(kernel=None)
    notebook = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    bar = cg.ProgressBar("adding up")
    for done, total in [(0, 2), (1, 2), (2, 2), (0, 3), (3, 3)]:
        bar(done, total)
        clock[0] += 1
    first, second = shown
    assert len(first) == 3
    assert first[-1].endswith("2/2 0:02")
    assert second[-1].endswith("3/3 0:01")
