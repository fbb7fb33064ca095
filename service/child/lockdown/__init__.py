"""What takes the process of an ONNX model its rights."""
