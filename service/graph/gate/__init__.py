"""Checks of an ONNX file before ONNX Runtime sees it."""
