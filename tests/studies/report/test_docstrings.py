from __future__ import annotations

import inspect

import pytest
from numpydoc.docscrape import FunctionDoc

from contextgap.studies import report

PUBLIC = [getattr(report, name) for name in report.__all__]


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: thing.__name__)
def test_docstrings_name_the_parameters(thing):
    names = list(inspect.signature(thing).parameters)
    assert [parameter.name for parameter in FunctionDoc(thing)["Parameters"]] == names
