"""Checks of a file's format by its first bytes, and of the text of its names."""

import re
from collections.abc import Iterator

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto, TensorProto

from service.errors import InvalidOnnxModel, ModelRule

EXPORT = "export the model to ONNX"
# Formats sent by mistake, with what to do; the name of a zip's first member is at 30.
OTHERS = (
    (
        0,
        rb"PK\x03\x04.{26}[^\x00]*\.onnx",
        "a zip archive of an ONNX model; send the .onnx file itself",
    ),
    (0, rb"PK\x03\x04", f"a zip archive, as PyTorch, Keras and numpy write; {EXPORT}"),
    (0, rb"\x89HDF", f"an HDF5 file, as Keras writes; {EXPORT}"),
    (0, rb"\x80", f"a pickle; {EXPORT}"),
    (4, rb"TFL3", f"a TensorFlow Lite model; {EXPORT}"),
    (0, rb"\x89PNG", f"a PNG picture; {EXPORT}"),
    (0, rb"\xff\xd8\xff", f"a JPEG picture; {EXPORT}"),
    (0, rb"\x1f\x8b", "a gzip archive; send the .onnx file in it"),
    (0, rb"version https://git-lfs", "a pointer of Git LFS; fetch the file with git lfs pull"),
    (0, rb"\{", f"JSON; {EXPORT}"),
    (0, rb"<", f"XML or HTML; {EXPORT}"),
)


def refuse_ort_format(data: bytes) -> None:
    """Refuse ONNX Runtime's own format.

    Such a file is already optimised, and the runtime checks it less strictly.
    """
    if data[4:8] == b"ORTM":
        raise InvalidOnnxModel.because(
            ModelRule.ORT_FORMAT,
            "the file is in ONNX Runtime's own format (.ort); send the .onnx file it was made from",
        )


def not_onnx(data: bytes) -> InvalidOnnxModel:
    """Return the error for bytes that are not an ONNX model."""
    unknown = f"a damaged file or one of another format; {EXPORT}"
    kinds = (name for at, magic, name in OTHERS if re.match(magic, data[at : at + 300], re.DOTALL))
    looks_like = f"it looks like {next(kinds, unknown)}" if data else f"it is empty; {EXPORT}"
    return InvalidOnnxModel.because(
        ModelRule.NOT_ONNX, f"the file is not an ONNX model: {looks_like}"
    )


# Comments, which are not read here.
REMARKS = frozenset(("doc_string", "metadata_props"))


def check_text(model: ModelProto) -> None:
    """Refuse a model with a name that is not UTF-8.

    Raises
    ------
    InvalidOnnxModel
        If there is such a name; the message shows its bytes.
    """
    for text in _texts(model):
        if isinstance(text, bytes):
            raise InvalidOnnxModel.because(
                ModelRule.NOT_TEXT, f"the name {text[:80]!r} is not text in UTF-8; rename it"
            )


def _texts(message: Message) -> Iterator[str | bytes]:
    if isinstance(message, TensorProto):  # listing its fields would copy the weights
        yield message.name
        for entry in message.external_data:
            yield from (entry.key, entry.value)
        return
    for field, value in message.ListFields():
        if field.name in REMARKS:
            continue
        values = (value,) if isinstance(value, str | bytes | Message) else value
        if field.type == FieldDescriptor.TYPE_STRING:
            yield from values
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in values:
                yield from _texts(inner)
