"""Uncertainties, tables and thresholds as nodes of an ONNX graph."""
