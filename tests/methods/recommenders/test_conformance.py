"""What every recommender must do."""

import pytest

import contextgap as cg
from contextgap.testing import check_recommender

RECOMMENDERS = [
    *{method.recommender: None for method in cg.METHODS.values()},
    cg.SmallestGapInHistory(7),
]


@pytest.mark.parametrize("recommender", RECOMMENDERS, ids=str)
def test_every_recommender_conforms(recommender):
    check_recommender(recommender)
