"""Checks that a component of your own does what the library will ask of it.

Each function runs one component through everything that learners, policies, files and studies do
with it, and raises ``AssertionError`` with what is wrong and what to do about it. They need numpy
and scipy only, and go into any test suite::

    def test_my_explorer():
        contextgap.testing.check_explorer(MyExplorer())
"""

from contextgap.testing.components import check_kernel, check_width
from contextgap.testing.methods import check_explorer, check_recommender
from contextgap.testing.problem import check_problem

__all__ = ["check_explorer", "check_kernel", "check_problem", "check_recommender", "check_width"]
