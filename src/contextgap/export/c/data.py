"""The tables of the exported code, and the bytes they take."""

from __future__ import annotations

import numpy as np

from contextgap.export.c.literals import Real, array, integers, label_text, rows, string
from contextgap.export.c.shape import Form, Shape
from contextgap.export.rule import DecisionRule

_POINTER = 8  # bytes of a pointer or size_t where they are largest


def tables(rule: DecisionRule, shape: Shape, real: Real) -> str:
    """Return the definitions of all constant arrays of numbers.

    Parameters
    ----------
    rule
        The policy as plain arrays.
    shape
        Which of them the code needs.
    real
        The type to write them in.
    """
    arms = rule.arms
    vectors = [("support", [arm.support for arm in arms], "observed contexts, arm after arm")]
    if shape.form.mean_from_weights:
        vectors.append(("weights", [arm.weights for arm in arms], "mean = prior + weights . k"))
    else:
        innovations = [arm.innovations for arm in arms]
        vectors.append(("innovations", innovations, "mean = prior + innovations . v"))
    if shape.form.has_widths:
        factors = [arm.factor for arm in arms]
        vectors.append(("factor", factors, "lower triangles of the arms' factors, by rows"))
        full = shape.form is Form.LOOK_BACK
        reach = [arm.reach if full else arm.reach[-1:] for arm in arms]
        after = " after 0, 1, ... observations" if full else ""
        vectors.append(("reach", reach, f"half width over standard deviation{after}"))
    return "\n".join(
        [
            *(
                array(real, name, np.concatenate([part.ravel() for part in parts]), comment)
                for name, parts, comment in vectors
            ),
            *_indices(rule, shape),
        ]
    )


def _indices(rule: DecisionRule, shape: Shape) -> list[str]:
    if shape.form is not Form.LOOK_BACK:
        return [integers("sizes", "size_t", shape.sizes, "observations of each arm")]
    entries = [size * (size + 1) // 2 for size in shape.sizes]
    pulls = rule.pulls[rule.pulls >= 0].tolist()
    return [
        integers("first_point", "size_t", _starts(shape.sizes), "where each arm's points start"),
        integers("first_entry", "size_t", _starts(entries), "where each arm's factor starts"),
        integers("pulls", _index_type(shape.arms)[0], pulls, "the arm observed at each step"),
        "/* the look-back compares the states after FIRST_STEP steps, one more, ..., all */\n"
        f"#define FIRST_STEP {shape.first_step}L\n#define STEPS {shape.steps}L\n",
    ]


def _starts(sizes: tuple[int, ...] | list[int]) -> list[int]:
    return [0, *np.cumsum(sizes)[:-1].tolist()]


def _index_type(arms: int) -> tuple[str, int]:
    """Return the smallest C type that holds every arm's index, and its bytes."""
    if arms <= 2**7:
        return "signed char", 1
    return ("short", 2) if arms <= 2**15 else ("int", 4)


def texts(rule: DecisionRule) -> tuple[list[str], list[str]]:
    """Return the labels and the names of the context's numbers as C string literals.

    Parameters
    ----------
    rule
        The policy as plain arrays.
    """
    labels = [
        string(label_text(label), f"the label of arm {i}") for i, label in enumerate(rule.labels)
    ]
    return labels, [string(name, f"column {i}") for i, name in enumerate(column_names(rule))]


def column_names(rule: DecisionRule) -> tuple[str, ...]:
    """Return the names of the context's numbers; those without one are called by position.

    Parameters
    ----------
    rule
        The policy as plain arrays.
    """
    return rule.columns or tuple(f"context[{i}]" for i in range(rule.dimension))


def text_rows(literals: list[str]) -> str:
    """Return string literals as the lines of an initialiser.

    Parameters
    ----------
    literals
        What ``texts`` gave.
    """
    return rows(literals, 1)


def numbers_in_tables(shape: Shape, kernel_constants: int) -> int:
    """Return how many real numbers the tables hold.

    Parameters
    ----------
    shape
        Sizes of the tables.
    kernel_constants
        Numbers in the kernel's own tables.
    """
    count = max(1, shape.points * shape.dimension) + max(1, shape.points) + kernel_constants
    if shape.form.has_widths:
        count += max(1, shape.factor_entries) + shape.arms
        count += shape.points if shape.form is Form.LOOK_BACK else 0
    return count


def other_bytes(rule: DecisionRule, shape: Shape) -> int:
    """Return the bytes of labels, names and indices.

    Parameters
    ----------
    rule
        The policy as plain arrays.
    shape
        Sizes of the tables.
    """
    words = [*map(label_text, rule.labels), *column_names(rule)]
    text = sum(len(word.encode("utf-8", "backslashreplace")) + 1 + _POINTER for word in words)
    if shape.form is Form.LOOK_BACK:
        pulls = max(1, shape.steps) * _index_type(shape.arms)[1]
        return text + 2 * _POINTER * shape.arms + pulls
    return text + _POINTER * shape.arms


def stack_bytes(shape: Shape, real: Real) -> int:
    """Return the bytes of all arrays on the stack while a decision is made.

    Parameters
    ----------
    shape
        Sizes of the tables.
    real
        The type of numbers.
    """
    padding = 2 * _POINTER
    if not shape.form.has_widths:
        return shape.arms * real.bytes + padding
    decision = (3 * shape.arms + 1) * real.bytes + padding
    solved = max(1, shape.solved_entries) * real.bytes
    if shape.form is Form.LOOK_BACK:
        return decision + solved + (4 * shape.arms + 1) * real.bytes + _POINTER * shape.arms
    return decision + solved + 2 * shape.arms * real.bytes
