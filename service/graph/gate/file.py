"""Checks of a file's format by its first bytes, and of the text of its names."""

from collections.abc import Iterator

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto, TensorProto

from service.errors import InvalidOnnxModel, ModelRule

ORT_FORMAT = (4, b"ORTM")
# Formats sent by mistake.
OTHERS = (
    (0, b"PK\x03\x04", "a zip archive, as PyTorch, Keras and numpy write"),
    (0, b"\x89HDF", "an HDF5 file, as Keras writes"),
    (0, b"\x80", "a pickle"),
    (4, b"TFL3", "a TensorFlow Lite model"),
    (0, b"\x89PNG", "a PNG picture"),
    (0, b"\xff\xd8\xff", "a JPEG picture"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"version https://git-lfs", "a pointer of Git LFS, in place of the file"),
    (0, b"{", "JSON"),
    (0, b"<", "XML or HTML"),
)


def refuse_ort_format(data: bytes) -> None:
    """Refuse ONNX Runtime's own format.

    Such a file is already optimised, and the runtime checks it less strictly.
    """
    if _is(data, *ORT_FORMAT):
        raise InvalidOnnxModel.because(
            ModelRule.ORT_FORMAT,
            "the file is in ONNX Runtime's own format (.ort); send the .onnx file it was made from",
        )


def not_onnx(data: bytes) -> InvalidOnnxModel:
    """Return the error for bytes that are not an ONNX model."""
    if not data:
        looks_like = "it is empty"
    else:
        kinds = (name for at, magic, name in OTHERS if _is(data, at, magic))
        looks_like = f"it looks like {next(kinds, 'a damaged file or one of another format')}"
    return InvalidOnnxModel.because(
        ModelRule.NOT_ONNX, f"the file is not an ONNX model: {looks_like}; export the model to ONNX"
    )


def _is(data: bytes, at: int, magic: bytes) -> bool:
    return data[at : at + len(magic)] == magic


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
