"""Running users' ONNX models in child processes; the parent never parses or runs one."""

from service.runner.asked_batch import BatchLimits
from service.runner.batch_request import Answer, BatchRequest, body_kind
from service.runner.batcher import Batcher
from service.runner.description import (
    PLAIN,
    HeadOutputs,
    LoadedOnnxModel,
    OnnxMember,
    OnnxModelFiles,
)
from service.runner.device import Device
from service.runner.head_matrix import FEW_ROWS, HeadMatrix
from service.runner.model_to_serve import (
    NOT_NEEDED,
    UNCHECKED,
    ModelToServe,
    ProviderParity,
    RunRows,
)
from service.runner.pass_plan import PassPlan, serving
from service.runner.pool import RunnerPool
from service.runner.queue_bounds import QueueBounds
from service.runner.queue_share import QueueShare
from service.runner.served_model_state import ServedModelState
from service.runner.served_models import ServedModels, ServingRoom

__all__ = [
    "FEW_ROWS",
    "NOT_NEEDED",
    "PLAIN",
    "UNCHECKED",
    "Answer",
    "BatchLimits",
    "BatchRequest",
    "Batcher",
    "Device",
    "HeadMatrix",
    "HeadOutputs",
    "LoadedOnnxModel",
    "ModelToServe",
    "OnnxMember",
    "OnnxModelFiles",
    "PassPlan",
    "ProviderParity",
    "QueueBounds",
    "QueueShare",
    "RunRows",
    "RunnerPool",
    "ServedModelState",
    "ServedModels",
    "ServingRoom",
    "body_kind",
    "serving",
]
