"""Parse, check and normalise the bytes of an ONNX file."""

from google.protobuf.message import DecodeError
from onnx import ModelProto

from service.graph.gate.file import check_text, not_onnx, refuse_ort_format
from service.graph.gate.functions import MAX_NODES, check_nodes
from service.graph.gate.rules import check_names_once, check_operators
from service.graph.gate.size import check_parts
from service.graph.gate.versions import check_versions, convert_old_opset, normalise_opset
from service.graph.proto import free_reserved_names


def load_onnx_model(data: bytes, *, max_nodes: int = MAX_NODES) -> ModelProto:
    """Parse an ONNX file, check that it may be run, and normalise it for all other steps.

    Names that start with ``howsure_`` are renamed, because the head uses this prefix. One entry of
    the default opset is kept, and raised to 11; operators that changed since are converted.

    Raises
    ------
    InvalidOnnxModel
        If the bytes are not an ONNX model, or the model breaks a rule of `service.graph.gate`.
    """
    refuse_ort_format(data)
    check_parts(data, max_nodes=max_nodes)
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise not_onnx(data) from error
    # Protocol buffers parse many other byte strings, even the empty one, as an empty message.
    if not model.HasField("graph") or model.ir_version < 1:
        raise not_onnx(data)
    check_text(model)
    check_names_once(model)
    check_operators(model)
    check_nodes(model, max_nodes=max_nodes)
    model = convert_old_opset(model)
    check_versions(model)
    normalise_opset(model)
    free_reserved_names(model.graph)
    return model
