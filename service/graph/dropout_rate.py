"""The share of values that a Dropout node drops."""

import numpy as np
from onnx import NodeProto

from service.errors import InvalidOnnxModel
from service.graph.constants import SmallConstants
from service.graph.quote import quote
from service.model_rules import ModelRule

USUAL_RATIO = 0.5  # where the node says nothing


def dropout_rate(node: NodeProto, constants: SmallConstants) -> float | None:
    """Return the ratio of a Dropout node, an attribute before opset 12; None if it is computed.

    Raises
    ------
    InvalidOnnxModel
        If it is no number of [0, 1).
    """
    ratio = USUAL_RATIO
    for attribute in node.attribute:
        if attribute.name == "ratio":
            ratio = _shortest(np.float32(attribute.f))
    if len(node.input) > 1 and node.input[1]:
        values = constants.read(node.input[1])
        if values is None:
            return None
        ratio = _shortest(values.reshape(-1)[0]) if values.size == 1 else -1.0
    if not 0.0 <= ratio < 1.0:
        raise InvalidOnnxModel.because(
            ModelRule.NOISE,
            f"the Dropout node that makes {quote(node.output[0])} has the ratio {ratio:.4g}; a "
            "number of at least 0 and below 1 is needed",
        )
    return ratio


def _shortest(value: np.generic) -> float:
    """Return 0.1 where the file holds the float32 next to it."""
    return float(str(value))
