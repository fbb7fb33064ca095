"""Attacks on ONNX models with gradients."""
