"""Finds out whether CUDA works here: by running something on it."""

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

from service.runner.child.onnx_session import CUDA, note, preload_cuda, providers, session_options

SIZE = 64


def probe_cuda(device: str) -> str:
    """Return why ``device`` (``cuda:N``) cannot be used, or nothing if it can.

    What the library lists as available says how it was built, not what this machine has; and a
    session falls back to the CPU without a word unless it is forbidden to.
    """
    if CUDA not in ort.get_available_providers():
        return "this build of ONNX Runtime has no CUDA"
    preload_cuda()
    options = session_options(1)
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    matrix = np.arange(SIZE * SIZE, dtype=np.float32).reshape(SIZE, SIZE) / SIZE**2
    try:
        session = ort.InferenceSession(
            _one_node(), options, providers=providers(device)[:1], enable_fallback=0
        )
        product = session.run(None, {"x": matrix})[0]
    except Exception as error:  # noqa: BLE001 - whatever a driver raises means the same here
        note(error)
        return "ONNX Runtime could not use it; its driver, CUDA 13 or cuDNN 9 may be missing"
    if not np.allclose(product, matrix @ matrix, rtol=1e-3):
        return "it multiplied two matrices wrongly"
    return ""


def _one_node() -> bytes:
    shape = [SIZE, SIZE]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "x"], ["y"])],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())
