"""Requests that are nothing but one tensor: what is left out is what the model declares."""

from collections.abc import Sequence
from math import prod

from service.bodies.oip.request import InferRequest, InputTensor
from service.bodies.oip.tensor_metadata import TensorMetadata, item_bytes
from service.errors import InvalidInput


def raw_request(inputs: Sequence[TensorMetadata], n_bytes: int) -> InferRequest:
    """Return the request for one row of the only input, whose answer is raw tensors.

    Of the sizes of the row one may be free: it follows from the number of bytes.

    Raises
    ------
    InvalidInput
        If the model has several inputs, or several of the sizes are free.
    """
    if len(inputs) != 1:
        names = ", ".join(tensor.name for tensor in inputs)
        raise InvalidInput.at(
            "body", f"a body without JSON is for models of one input; this one has {names}"
        )
    tensor = inputs[0]
    sizes = tensor.shape[1:]
    if sizes.count(-1) > 1:
        raise InvalidInput.at(
            "body", f"the shape {tensor.shape} of {tensor.name} does not follow from its bytes"
        )
    known = prod(size for size in sizes if size > 0) * item_bytes(tensor)
    shape = [1, *(max(n_bytes // known, 1) if size < 0 else size for size in sizes)]
    described = InputTensor(tensor.name, shape, tensor.datatype, {"binary_data_size": n_bytes})
    return InferRequest([described], parameters={"binary_data_output": True})
