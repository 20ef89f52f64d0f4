"""Eligible arms in C: one more function, which decides as if there were no other arms."""

from __future__ import annotations

from contextgap.export.c.columns import words_of
from contextgap.export.c.fallback import words_inside
from contextgap.export.c.filling import fill
from contextgap.export.c.layout import Layout
from contextgap.export.rule import DecisionRule, ExportError, check_masks
from contextgap.recommenders import HighestMean, HighestUpper

_UPPER = """\
    contextgap_real upper[CONTEXTGAP_ARMS];
"""
_GAPS = """\
    gaps_among(eligible, upper, decision);
"""
_CERTIFICATE = """\
    certify(decision);
"""
_FALLBACK = """\
    status = reason_to_fall_back(context, decision);
    if (status != CONTEXTGAP_OK) {
        if (eligible[CONTEXTGAP_FALLBACK_ARM] == 0U) {
            status = CONTEXTGAP_NO_FALLBACK;
        } else {
            fall_back(decision);
        }
    }
"""


def check_eligible(rule: DecisionRule, layout: Layout) -> None:
    """Raise ``ExportError`` for what cannot choose among eligible arms in C."""
    check_masks(rule)
    if rule.shared is not None and layout.form.has_widths:
        raise ExportError(
            "C cannot choose among eligible arms that share what they learn, unless it needs "
            "their means only; export to ONNX, or with eligible=False"
        )


def among_part(rule: DecisionRule, layout: Layout) -> str:
    """Return the function that decides among eligible arms, and what it needs."""
    widths = layout.form.has_widths
    score, better = "decision->gap", "<"
    if isinstance(rule.recommender, HighestMean):
        score, better = "decision->mean", ">"
    elif isinstance(rule.recommender, HighestUpper):
        score, better = "upper", ">"
    typed = rule.table is not None
    parts = [fill("best_among.c", better=better), fill("gaps_among.c") if widths else ""]
    parts.append(
        fill(
            "decide_among.c",
            linkage="static " if typed else "",
            decide_among="decide_spread_among" if typed else "contextgap_decide_among",
            decide=words_inside(words_of(rule.table), rule).decide,
            upper=_UPPER if widths else "",
            gaps=_GAPS if widths else "",
            score=score,
            certificate=_CERTIFICATE if widths else "",
            fallback="" if rule.fallback is None else _FALLBACK,
        )
    )
    return "".join(parts)
