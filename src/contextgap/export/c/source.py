"""``contextgap_policy.c``: tables, kernel and rule."""

from __future__ import annotations

from contextgap.export.c.data import tables, text_rows, texts
from contextgap.export.c.kernels import KernelSource
from contextgap.export.c.literals import Real
from contextgap.export.c.shape import Form, Shape
from contextgap.export.c.template import fill
from contextgap.export.rule import DecisionRule
from contextgap.recommenders import HighestMean, HighestUpper

# Replaced by the export's id, which depends on the text around it.
EXPORT_ID = "@EXPORT_ID@"


def source(rule: DecisionRule, shape: Shape, kernel: KernelSource, real: Real, version: str) -> str:
    """Return the text of ``contextgap_policy.c``, but for the export's id.

    Parameters
    ----------
    rule
        The policy as plain arrays.
    shape
        Form and sizes of the code.
    kernel
        The kernel in C.
    real
        The type to compute in.
    version
        Of this library.
    """
    labels, columns = texts(rule)
    return fill(
        "policy.c",
        version=version,
        export_id=EXPORT_ID,
        real_max="FLT_MAX" if real.float32 else "DBL_MAX",
        real_huge="HUGE_VALF" if real.float32 else "HUGE_VAL",
        suffix=real.suffix,
        labels=text_rows(labels),
        columns=text_rows(columns),
        data=tables(rule, shape, real),
        kernel=kernel.code,
        rule=_rule(rule, shape, real),
    )


def _rule(rule: DecisionRule, shape: Shape, real: Real) -> str:
    prior = real.literal(rule.prior, "the prior mean")
    if shape.form is Form.MEANS:
        return fill("highest.c") + fill("means.c", prior=prior) + fill("decide_means.c")
    by_decision = fill("recommend_by_decision.c")
    solved = max(1, shape.solved_entries)
    if shape.form is Form.LOOK_BACK:
        look_back = fill("look_back.c", solved_entries=solved)
        return fill("lowest.c") + fill("gaps.c", prior=prior) + look_back + by_decision
    picking, pick = "lowest.c", "lowest(decision->gap)"
    if isinstance(rule.recommender, HighestMean):
        picking, pick = "highest.c", "highest(decision->mean)"
    elif isinstance(rule.recommender, HighestUpper):
        picking, pick = "highest.c", "highest(upper)"
    explained = shape.form is Form.MEANS_EXPLAINED
    mean_term = "weights[point] * k" if explained else "v[i] * innovations[point]"
    return (
        fill(picking)
        + (fill("means.c", prior=prior) if explained else "")
        + fill("gaps.c", prior=prior)
        + fill("last_step.c", solved_entries=solved, mean_term=mean_term, pick=pick)
        + ("" if explained else by_decision)
    )
