"""A frozen policy as an ONNX graph, and a way to run one."""

from contextgap.export.onnx.runner import GraphPolicy
from contextgap.export.onnx.writer import OnnxFile, write_onnx

__all__ = ["GraphPolicy", "OnnxFile", "write_onnx"]
