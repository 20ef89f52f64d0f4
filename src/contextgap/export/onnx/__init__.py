"""A frozen policy as an ONNX graph, and a way to run one."""

from contextgap.export.onnx.files import GraphPolicy, OnnxFile, write_onnx

__all__ = ["GraphPolicy", "OnnxFile", "write_onnx"]
