"""Scalar outputs of the graph, one number per sample, that the caller uses as measures."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from howsure.onnx_head.builder import GraphBuilder
from howsure.onnx_head.measures import without_minus_zero
from service.errors import InvalidConfig
from service.graph.description import TensorSpec, quote, quote_all

PLACE = "config.measures"
NUMBERS = frozenset(
    (
        *("float16", "bfloat16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        "unknown",  # decided by the values of the first rows
    )
)


def check_declared(outputs: Sequence[TensorSpec], names: Sequence[str]) -> None:
    """Refuse outputs that cannot be one number per sample, by their declaration.

    Raises
    ------
    InvalidConfig
        If there is no such output, or it is declared differently.
    """
    by_name = {spec.name: spec for spec in outputs}
    for name in names:
        if name not in by_name:
            raise InvalidConfig.at(
                PLACE,
                f"the model has no output {quote(name)}; it has "
                + quote_all([spec.name for spec in outputs]),
            )
        spec = by_name[name]
        if spec.dtype not in NUMBERS or not _can_be_scalar(spec.shape):
            raise _not_scalar(str(spec))


def check_values(name: str, values: NDArray[np.floating], n_samples: int) -> None:
    """Refuse an output that is not one number per sample, by its values on real rows.

    Raises
    ------
    InvalidConfig
        If its shape is not (samples,), (samples, 1) or the like.
    """
    if values.ndim == 0 or len(values) != n_samples or values.size != n_samples:
        raise _not_scalar(f"{quote(name)} of shape {values.shape} for {n_samples} samples")


def pass_through(build: GraphBuilder, tensors: Mapping[str, str]) -> None:
    """Append nodes that output tensors as float32 of shape (n,), with these names.

    NaN stays NaN, and values beyond float32 become infinite.
    """
    for output, tensor in tensors.items():
        wide = build.add("Cast", tensor, to=build.element_type)
        narrow = build.add("Cast", without_minus_zero(build, wide), to=TensorProto.FLOAT)
        build.add("Reshape", narrow, build.integers([-1]), output=output)


def _can_be_scalar(shape: tuple[int | None, ...] | None) -> bool:
    return shape is None or (len(shape) > 0 and all(size in (None, 1) for size in shape[1:]))


def _not_scalar(found: str) -> InvalidConfig:
    return InvalidConfig.at(
        PLACE,
        f"output {found} is no measure: one number per sample is needed, of shape (samples,) or "
        "(samples, 1)",
    )
