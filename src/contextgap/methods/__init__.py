"""Which arm to try and which to deploy: explorers, recommenders, and the methods made of both."""

from contextgap.methods.method import METHODS, Method, read_method

__all__ = ["METHODS", "Method", "read_method"]
