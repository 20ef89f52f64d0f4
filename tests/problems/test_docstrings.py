from __future__ import annotations

import inspect

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

from contextgap import problems

PUBLIC = [getattr(problems, name) for name in problems.__all__]
METHODS = [
    member
    for kind in PUBLIC
    for name, member in vars(kind).items()
    if inspect.isfunction(member) and not name.startswith("_")
]


def documented(doc):
    return [parameter.name for parameter in doc["Parameters"]]


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_class_docstrings_name_the_parameters(kind):
    names = [] if inspect.isabstract(kind) else list(inspect.signature(kind).parameters)
    assert documented(ClassDoc(kind)) == names


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__qualname__)
def test_method_docstrings_name_the_parameters(method):
    given = list(inspect.signature(method).parameters.values())[1:]
    names = [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in given]
    assert documented(FunctionDoc(method)) == names
