"""Scales learnt from the data seen so far: bandwidths, ridge, prior mean, reward scale."""

from contextgap.scales.search import Scales, default_kernels, learn_scales

__all__ = ["Scales", "default_kernels", "learn_scales"]
