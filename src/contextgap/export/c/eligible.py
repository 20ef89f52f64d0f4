"""Eligible arms in C: one more function, which decides as if there were no other arms."""

from __future__ import annotations

from contextgap.export.c.columns import words_of
from contextgap.export.c.fallback import words_inside
from contextgap.export.c.filling import fill
from contextgap.export.c.layout import Layout
from contextgap.export.c.literals import integers
from contextgap.export.rule import DecisionRule
from contextgap.methods.recommenders import HighestMean, HighestUpper

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
        if (eligible[CONTEXTGAP_DEFAULT_ARM] == 0U) {
            status = CONTEXTGAP_NO_FALLBACK;
        } else {
            fall_back(decision);
        }
    }
"""
# Gaps of arms that share come from every two of them, so those that count are told beforehand.
_SKIP = """\
            if ((eligible[a] == 0U) || (eligible[b] == 0U)) {
                continue;
            }
"""
_TOLD = {
    "eligible_parameter": ",\n                   const unsigned char *eligible",
    "eligible_argument": ", eligible",
    "skip": _SKIP,
}


def shared_steps(
    words: dict[str, str], layout: Layout, eligible: bool, *, mean_term: str, pick: str
) -> str:
    """Return the function that decides for arms that share, which is told the eligible ones.

    Without ``eligible`` arms it is told nothing.
    """
    parts = {"solved_entries": str(layout.solved_entries), "mean_term": mean_term, "pick": pick}
    if not eligible:
        return fill("shared_step.c", **words, **parts, **dict.fromkeys(_TOLD, ""))
    inner = {**words, "linkage": "static ", "decide": "decide_shared"}
    every = integers("everyone", "unsigned char", [1] * layout.arms, "every arm is eligible")
    step = fill("shared_step.c", **inner, **parts, **_TOLD)
    return f"{every}\n{step}" + fill("decide_everyone.c", **words)


def among_part(rule: DecisionRule, layout: Layout) -> str:
    """Return the function that decides among eligible arms, and what it needs."""
    widths = layout.form.has_widths
    score, better = "decision->gap", "<"
    if isinstance(rule.recommender, HighestMean):
        score, better = "decision->mean", ">"
    elif isinstance(rule.recommender, HighestUpper):
        score, better = "upper", ">"
    typed = rule.table is not None
    decide, told = words_inside(words_of(rule.table), rule).decide, ""
    gaps = "gaps_among.c"
    if rule.shared is not None and widths:
        decide, told, gaps = "decide_shared", _TOLD["eligible_argument"], "shared_gaps_among.c"
    parts = [fill("best_among.c", better=better)]
    parts += [fill(gaps), fill("certify.c")] if widths else []
    parts.append(
        fill(
            "decide_among.c",
            told=told,
            linkage="static " if typed else "",
            decide_among="decide_spread_among" if typed else "contextgap_decide_among",
            decide=decide,
            upper=_UPPER if widths else "",
            gaps=_GAPS if widths else "",
            score=score,
            certificate=_CERTIFICATE if widths else "",
            fallback="" if rule.fallback is None else _FALLBACK,
        )
    )
    return "".join(parts)
