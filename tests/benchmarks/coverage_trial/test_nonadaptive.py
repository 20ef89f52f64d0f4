"""The trial of the width for picks that do not depend on rewards, in small."""

import numpy as np

from contextgap.beliefs import NonadaptiveWidth
from coverage_trial import nonadaptive
from coverage_trial.trial import binomial_limits


def test_intervals_hold_and_the_trial_can_find_out_when_not(monkeypatch):
    narrow = NonadaptiveWidth(0.01, 0.1, 0.1, 60)
    found = nonadaptive.widths(60)
    monkeypatch.setattr(nonadaptive, "widths", lambda _: {**found, "too narrow": narrow})
    monkeypatch.setattr(nonadaptive, "RIDGES", (0.01,))
    medians = {}
    for explorer, _, width, outcomes in nonadaptive.rows(2, 60):
        assert len(outcomes) == 24
        low = binomial_limits(sum(each.outside for each in outcomes), len(outcomes))[0]
        assert (low > 0.1) == (width == "too narrow")
        medians[explorer, width] = np.median([each.certificate for each in outcomes])
    assert {name for name, _ in medians} == {"uniform", "max-variance", "planned-sampling"}
    for explorer in nonadaptive.EXPLORERS:
        own, theorem = (medians[explorer, f"{name}, tight"] for name in ("nonadaptive", "theorem"))
        assert own < theorem


def test_the_command_prints_a_row_for_every_width(monkeypatch, capsys):
    monkeypatch.setattr(nonadaptive, "EXPLORERS", {"uniform": nonadaptive.Uniform()})
    nonadaptive.main(1, 10)
    printed = capsys.readouterr().out.splitlines()
    assert len([line for line in printed if line.startswith("| uniform")]) == 8
