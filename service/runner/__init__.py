"""Running users' ONNX models in child processes; the parent never parses or runs one."""

from service.runner.description import HeadOutputs, LoadedOnnxModel, OnnxModelFiles
from service.runner.device import Device
from service.runner.pool import RunnerPool

__all__ = ["Device", "HeadOutputs", "LoadedOnnxModel", "OnnxModelFiles", "RunnerPool"]
