"""The text of the exported header and source, from templates and the policy's tables."""

from __future__ import annotations

import textwrap
from dataclasses import asdict

import numpy as np

from contextgap.export.c.columns import (
    header_parts,
    row_layout,
    source_macros,
    source_part,
    words_of,
)
from contextgap.export.c.eligible import among_part, shared_steps
from contextgap.export.c.fallback import (
    among_words,
    fallback_part,
    header_words,
    range_tables,
    words_around,
    words_inside,
)
from contextgap.export.c.filling import fill
from contextgap.export.c.layout import Form, Layout, Operations, first_step
from contextgap.export.c.literals import (
    array,
    column_names,
    comment_text,
    integers,
    label_text,
    rows,
    string,
)
from contextgap.export.c.naming import named
from contextgap.export.rule import DecisionRule, SharedTable
from contextgap.methods.recommenders import HighestMean, HighestUpper

_FIELDS = """\
    /* Full widths of the intervals: upper = mean + width / 2. */
    contextgap_real width[CONTEXTGAP_ARMS];
    /* {gaps} */
    contextgap_real gap[CONTEXTGAP_ARMS];
    /* The arm's regret is at most this where intervals hold: max(0, {gap}).
     * {promise} */
    contextgap_real certificate;
"""
_OF_COSTS = "Expected rewards: costs were told, and these are minus the expected costs."
_EXPLAINED = """\
 * contextgap_decide also solves with the arms' factors, {entries} numbers, for widths and gaps.
"""


def source(rule: DecisionRule, layout: Layout, kernel: str, prefix: str, eligible: bool) -> str:
    """Return the text of ``contextgap_policy.c``: tables, kernel and rule."""
    real, columns = layout.real, column_names(rule.columns, rule.inputs)
    among = among_part(rule, layout) if eligible else ""
    spread = source_part(rule, real, prefix)
    if eligible and rule.table is not None:
        spread += fill("among_columns.c", prefix)
    return fill(
        "policy.c",
        prefix,
        real_max="FLT_MAX" if real.float32 else "DBL_MAX",
        real_huge="HUGE_VALF" if real.float32 else "HUGE_VAL",
        suffix=real.suffix,
        labels=rows(
            (string(label_text(a), f"the label of arm {i}") for i, a in enumerate(rule.labels)), 1
        ),
        columns=rows((string(name, f"column {i}") for i, name in enumerate(columns)), 1),
        data=named("\n".join(_data(rule, layout)), prefix),
        kernel=named(kernel, prefix),
        rule=named(_rule(rule, layout, eligible) + among, prefix) + spread,
        macros=source_macros(rule, real),
        dimension=named(words_of(rule.table).dimension, prefix),
    )


def _data(rule: DecisionRule, layout: Layout) -> list[str]:
    """The definitions of all constant arrays of numbers."""
    return [*_numbers(rule, layout), *_indices(rule, layout), *range_tables(rule, layout)]


def _numbers(rule: DecisionRule, layout: Layout) -> list[str]:
    """The definitions of all constant arrays of real numbers."""
    if rule.shared is not None:
        return _shared_numbers(rule.shared, layout)
    arms, form = rule.arms, layout.form
    first = arms[:1] if rule.common else arms  # whose support and factor are written
    points = "support points" if rule.common else "observed contexts, arm after arm"
    vectors = [("support", [arm.support for arm in first], points)]
    if form.mean_from_weights:
        vectors.append(("weights", [arm.weights for arm in arms], "mean = prior + weights . k"))
    else:
        innovations = [arm.innovations for arm in arms]
        vectors.append(("innovations", innovations, "mean = prior + innovations . v"))
    if form.has_widths:
        factors = [arm.factor for arm in first]
        vectors.append(("factor", factors, "lower triangles of the arms' factors, by rows"))
        if rule.common:
            added = [arm.added for arm in arms]
            vectors.append(("added", added, "those of the factors that add variance"))
        full = form is Form.LOOK_BACK
        reach = [arm.reach if full else arm.reach[-1:] for arm in arms]
        after = " after 0, 1, ... observations" if full else ""
        vectors.append(("reach", reach, f"half width over standard deviation{after}"))
    return [
        array(layout.real, name, np.concatenate([part.ravel() for part in parts]), comment)
        for name, parts, comment in vectors
    ]


def _shared_numbers(table: SharedTable, layout: Layout) -> list[str]:
    """The same for arms that share."""
    vectors = [("support", table.support, "observed contexts")]
    if layout.form.mean_from_weights:
        vectors.append(("weights", table.weights, "mean = prior + weights . k, arm after arm"))
    else:
        vectors.append(("innovations", table.innovations, "mean = prior + innovations . v"))
    if layout.form.has_widths:
        vectors += [
            ("factor", table.factor, "lower triangle of the factor, by rows"),
            ("reach", np.array([table.reach]), "half width over standard deviation"),
            ("alike", table.alike, "correlations of arms with those observed"),
            ("unlike", 2 - 2 * table.among, "of two arms: variance of their difference over k"),
        ]
    return [array(layout.real, name, values.ravel(), comment) for name, values, comment in vectors]


def _indices(rule: DecisionRule, layout: Layout) -> list[str]:
    """The definitions of all constant arrays of whole numbers."""
    if rule.shared is not None:
        found = [integers("sizes", "size_t", layout.sizes[:1], "observations")]
        if layout.form.has_widths:
            whose = rule.shared.whose.tolist()
            kind = layout.index_type[0]
            found.append(integers("whose", kind, whose, "the column of alike of each point"))
            found.append(f"#define COLUMNS {layout.columns}U\n")
        return found
    if rule.common:
        return [integers("sizes", "size_t", layout.sizes[:1], "support points")]
    if layout.form is not Form.LOOK_BACK:
        return [integers("sizes", "size_t", layout.sizes, "observations of each arm")]
    points, entries = (
        [0, *np.cumsum(sizes)[:-1].tolist()]
        for sizes in (layout.sizes, [size * (size + 1) // 2 for size in layout.sizes])
    )
    pulls = rule.pulls[rule.pulls >= 0].tolist()
    return [
        integers("first_point", "size_t", points, "where each arm's points start"),
        integers("first_entry", "size_t", entries, "where each arm's factor starts"),
        integers("pulls", layout.index_type[0], pulls, "the arm observed at each step"),
        "/* the look-back compares the states after FIRST_STEP steps, one more, ..., all */\n"
        f"#define FIRST_STEP {first_step(rule)}L\n#define STEPS {layout.points}L\n",
    ]


def _rule(rule: DecisionRule, layout: Layout, eligible: bool) -> str:
    """The functions that decide, with the fallback and without."""
    outer = words_of(rule.table)
    by_decision = ""
    if not layout.form.mean_from_weights:
        by_decision = fill("recommend_by_decision.c", **outer._asdict())
    recommended = _recommended(rule, layout, eligible)
    return recommended + fallback_part(rule, layout, outer) + by_decision


def _recommended(rule: DecisionRule, layout: Layout, eligible: bool) -> str:
    form, solved = layout.form, layout.solved_entries
    words = words_inside(words_of(rule.table), rule)._asdict()
    prior = layout.real.literal(rule.prior, "the prior mean")
    means = "means.c" if rule.shared is None and not rule.common else "shared_means.c"
    if form is Form.MEANS:
        return (
            fill("highest.c") + fill(means, prior=prior, **words) + fill("decide_means.c", **words)
        )
    if form is Form.LOOK_BACK:
        look_back = fill("look_back.c", solved_entries=solved, **words)
        gaps = fill("gaps.c", prior=prior) + fill("interval_gaps.c")
        return fill("lowest.c") + gaps + look_back
    picking, pick = "lowest.c", "lowest(decision->gap)"
    if isinstance(rule.recommender, HighestMean):
        picking, pick = "highest.c", "highest(decision->mean)"
    elif isinstance(rule.recommender, HighestUpper):
        picking, pick = "highest.c", "highest(upper)"
    explained = form is Form.MEANS_EXPLAINED
    if rule.common:
        own, values = ("weights", "k") if explained else ("innovations", "v")
        shift = f"dot(&{own}[arm * sizes[0]], {values}, sizes[0])"
        believe = fill("common_step.c", solved_entries=solved, shift=shift, **words)
        steps = fill("interval_gaps.c") + believe + fill("decide_last_step.c", pick=pick, **words)
    elif rule.shared is None:
        mean_term = "weights[point] * k" if explained else "v[i] * innovations[point]"
        believe = fill("last_step.c", solved_entries=solved, mean_term=mean_term, **words)
        steps = fill("interval_gaps.c") + believe + fill("decide_last_step.c", pick=pick, **words)
    else:
        mean_term = (
            "weights[(arm * sizes[0]) + i] * k" if explained else "v[arm][i] * innovations[i]"
        )
        steps = shared_steps(words, layout, eligible, mean_term=mean_term, pick=pick)
    return (
        fill(picking)
        + (fill(means, prior=prior, **words) if explained else "")
        + fill("gaps.c", prior=prior)
        + steps
    )


def header(
    rule: DecisionRule,
    layout: Layout,
    operations: Operations,
    default_arm: int,
    precision: str,
    prefix: str,
    eligible: bool,
) -> str:
    """Return the text of ``contextgap_policy.h``: the interface, and what a call costs."""
    explained = layout.form is Form.MEANS_EXPLAINED
    words = {**words_around(words_of(rule.table), rule)._asdict(), **header_words(rule)}
    return fill(
        "policy.h",
        prefix,
        **{name: named(word, prefix) for name, word in words.items()},
        **header_parts(rule, prefix),
        among=named(fill("among.h", **among_words(rule)), prefix) if eligible else "",
        recommender=type(rule.recommender).__name__,
        arms=layout.arms,
        points=layout.points,
        kernel=_wrapped(comment_text(str(rule.kernel))),
        inputs=rule.inputs,
        columns=row_layout(rule, prefix),
        **asdict(operations),
        multiply_adds=operations.multiply_adds,
        explained_cost=named(
            _EXPLAINED.format(entries=layout.factor_entries) if explained else "", prefix
        ),
        number_bytes=layout.number_bytes,
        rom_bytes=layout.rom_bytes,
        ram_bytes=layout.ram_bytes,
        precision=_wrapped(precision),
        real=layout.real.name,
        has_widths=int(layout.form.has_widths),
        means_are=_OF_COSTS if rule.costs else "Expected rewards.",
        default_arm=default_arm,
        decision_fields=named(_fields(rule, layout.form) if layout.form.has_widths else "", prefix),
        failed_fields=", all else is HUGE_VAL" if layout.form.has_widths else "",
    )


def _fields(rule: DecisionRule, form: Form) -> str:
    gap = "its gap"
    if form is Form.LOOK_BACK:
        gap += " at the step it was chosen for"
        gap += ", the last for the fallback" if rule.fallback is not None else ""
    promise = "Heuristic: the width promises nothing."
    if rule.probability is not None:
        promise = f"All hold at once with probability {rule.probability:g}."
    gaps = "Highest upper of the other arms minus own lower."
    if rule.shared is not None:
        gaps = "Highest upper bound of another arm's lead over this one."
    return _FIELDS.format(gaps=gaps, gap=gap, promise=promise)


def _wrapped(text: str) -> str:
    return "\n * ".join(textwrap.wrap(text, 92, break_long_words=False))
