"""From the bytes of a file to a model that can be edited."""

from google.protobuf.message import DecodeError
from onnx import ModelProto

from service.errors import InvalidOnnxModel
from service.graph.names import free_reserved_names
from service.graph.text import check_text
from service.graph.versions import check_versions, normalise_opset


def load_onnx_model(data: bytes) -> ModelProto:
    """Parse an ONNX file and make it ready for every other step.

    Names that start with ``howsure_`` are renamed, for the head's own outputs are called so; the
    default opset is left once, and exactly raised to 11 where that changes nothing.

    Raises
    ------
    InvalidOnnxModel
        If the bytes are no ONNX model, it has no graph, a name in it is no text, or
        its versions cannot be served.
    """
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise InvalidOnnxModel.at("model", "the file is not an ONNX model") from error
    # Protocol buffers take many a stray byte string, the empty one too, for an empty message.
    if not model.HasField("graph") or model.ir_version < 1:
        raise InvalidOnnxModel.at("model", "the file is not an ONNX model: it holds no graph")
    check_text(model)
    check_versions(model)
    normalise_opset(model)
    free_reserved_names(model.graph)
    return model
