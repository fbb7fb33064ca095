"""Running users' ONNX models in child processes; the parent never parses or runs one."""

from service.runner.description import (
    PLAIN,
    HeadOutputs,
    LoadedOnnxModel,
    OnnxMember,
    OnnxModelFiles,
)
from service.runner.device import Device
from service.runner.pass_plan import PassPlan, serving
from service.runner.pool import RunnerPool

__all__ = [
    "PLAIN",
    "Device",
    "HeadOutputs",
    "LoadedOnnxModel",
    "OnnxMember",
    "OnnxModelFiles",
    "PassPlan",
    "RunnerPool",
    "serving",
]
