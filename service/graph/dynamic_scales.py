"""Operators that take one scale for a whole batch, as dynamic quantisation does.

The answer to a row of such a model depends on the rows beside it, unless it runs one row at a time.
"""

from onnx import ModelProto

from service.graph.inline import all_nodes
from service.graph.proto import operator

# The scale is that of the whole tensor, as the operator is defined (ONNX Runtime issue 10111).
DYNAMIC = frozenset(
    (
        "DynamicQuantizeLinear",
        "com.microsoft.DynamicQuantizeLSTM",
        "com.microsoft.DynamicQuantizeMatMul",
    )
)


def dynamic_operator(model: ModelProto) -> str | None:
    """Return an operator of the model that takes its scale from a whole batch, if there is one."""
    bodies = (node for function in model.functions for node in function.node)
    for node in (*all_nodes(model.graph.node), *all_nodes(bodies)):
        if (name := operator(node)) in DYNAMIC:
            return name
    return None
