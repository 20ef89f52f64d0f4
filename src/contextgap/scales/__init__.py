"""Scales learnt from the data seen so far: bandwidths, ridge, prior mean, reward scale."""

from contextgap.scales.search import Scales, default_kernel, learn_scales

__all__ = ["Scales", "default_kernel", "learn_scales"]
