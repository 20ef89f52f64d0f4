"""Kernels: how similar two contexts are, and so how much one reward says about another."""

from contextgap.kernels.base import Constant, Kernel, Product, Scaled, Sum, read_kernel
from contextgap.kernels.categories import Warped
from contextgap.kernels.dot import Linear, Polynomial
from contextgap.kernels.sklearn import SklearnKernel
from contextgap.kernels.stationary import Gaussian, Matern, Periodic

__all__ = [
    "Constant",
    "Gaussian",
    "Kernel",
    "Linear",
    "Matern",
    "Periodic",
    "Polynomial",
    "Product",
    "Scaled",
    "SklearnKernel",
    "Sum",
    "Warped",
    "read_kernel",
]
