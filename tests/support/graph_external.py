"""A tiny model whose weights lie in a file of their own."""

import numpy as np
from graph_models import make_model, node
from onnx import TensorProto

WEIGHTS = np.random.default_rng(0).normal(size=(40, 20)).astype(np.float32)
BIAS = np.arange(20, dtype=np.float32)
BLOB = WEIGHTS.tobytes() + BIAS.tobytes()


def external(name, shape, offset, length=None, *, location="w.data", element_type=1):
    tensor = TensorProto(name=name, data_type=element_type, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": offset, "length": length}
    for key, entry in entries.items():
        if entry is not None:
            tensor.external_data.add(key=key, value=str(entry))
    return tensor


def linear(weights=None, bias=None):
    return make_model(
        [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["y"])],
        initializers=[
            external("w", [40, 20], 0, 3200) if weights is None else weights,
            external("b", [20], 3200, 80) if bias is None else bias,
        ],
    )
